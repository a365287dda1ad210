// Each record as its stored message and back. Ids are not in the messages: they are the keys.
// Private to the codec.
//
// read() fills a record whose id is set already and answers whether the message makes sense;
// digests are stored without the padding that they have in memory.
#pragma once

#include "berth/store/v1/records.pb.h"
#include "server/directory/records.h"

namespace berth {

void write(const Namespace& record, store::v1::NamespaceRecord& message);
void write(const Session& record, store::v1::SessionRecord& message);
void write(const Pool& record, store::v1::PoolRecord& message);
void write(const Replica& record, store::v1::ReplicaRecord& message);
void write(const Reservation& record, store::v1::ReservationRecord& message);
void write(const Lease& record, store::v1::LeaseRecord& message);
void write(const Operation& record, store::v1::OperationRecord& message);
void write(const Job& record, store::v1::JobRecord& message);
void write(const Pin& record, store::v1::PinRecord& message);
void write(const EvictionSetting& record, store::v1::EvictionRecord& message);

[[nodiscard]] bool read(const store::v1::NamespaceRecord& message, Namespace& record);
[[nodiscard]] bool read(const store::v1::SessionRecord& message, Session& record);
[[nodiscard]] bool read(const store::v1::PoolRecord& message, Pool& record);
[[nodiscard]] bool read(const store::v1::ReplicaRecord& message, Replica& record);
[[nodiscard]] bool read(const store::v1::ReservationRecord& message, Reservation& record);
[[nodiscard]] bool read(const store::v1::LeaseRecord& message, Lease& record);
[[nodiscard]] bool read(const store::v1::OperationRecord& message, Operation& record);
[[nodiscard]] bool read(const store::v1::JobRecord& message, Job& record);
[[nodiscard]] bool read(const store::v1::PinRecord& message, Pin& record);
[[nodiscard]] bool read(const store::v1::EvictionRecord& message, EvictionSetting& record);

// Parts of records, for the codec of runs.
//
// Length of a digest without the zeros at its end, and that many bytes: it is stored without the
// padding of shorter ones, and one that itself ends in zeros gets them back as padding.
size_t width_of(const Digest& digest);
std::string_view view_of(const Digest& digest, size_t width);
[[nodiscard]] bool read_digest(std::string_view bytes, Digest& digest);
[[nodiscard]] bool read_key(uint64_t namespace_id, uint32_t shard, uint32_t part, ObjectKey& key);
// Of a replica that is not part of a reservation.
[[nodiscard]] bool read_state(uint32_t number, uint32_t why_number, ReplicaState& state, Why& why);

// 16 bytes, most significant first; none for the invalid id.
std::string id_bytes(const Id128& id);
[[nodiscard]] bool read_id(std::string_view bytes, Id128& id);

}  // namespace berth
