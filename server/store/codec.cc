#include "server/store/codec.h"

#include "common/text.h"
#include "server/store/record_messages.h"

namespace berth {
namespace {

void append_id(uint64_t id, std::string& key) {
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(id >> shift));
}

uint64_t id_at(std::string_view key, size_t at) {
  uint64_t id = 0;
  for (size_t i = at; i < at + kIdKeyBytes; ++i) id = id << 8 | static_cast<uint8_t>(key[i]);
  return id;
}

std::optional<Family> family_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::kNamespace:
      return Family::kNamespaces;
    case RecordKind::kSession:
      return Family::kSessions;
    case RecordKind::kPool:
      return Family::kPools;
    case RecordKind::kReplica:
    case RecordKind::kReservation:
      return Family::kReplicas;
    case RecordKind::kLease:
      return Family::kLeases;
    case RecordKind::kOperation:
      return Family::kOperations;
    case RecordKind::kJob:
      return Family::kJobs;
    case RecordKind::kPin:
      return Family::kPins;
    case RecordKind::kEvictionSetting:
      return Family::kMeta;
    default:
      return std::nullopt;
  }
}

tl::unexpected<Error> refuse_record(Family family, std::string_view key) {
  return tl::unexpected(unreadable_record(family, key));
}

template <class Message>
bool parse(std::string_view value, Message& message) {
  return message.ParseFromArray(value.data(), static_cast<int>(value.size()));
}

}  // namespace

std::string key_of_id(uint64_t id) {
  std::string key;
  append_id(id, key);
  return key;
}

uint64_t id_of_key(std::string_view key) { return id_at(key, 0); }

Error unreadable_record(Family family, std::string_view key) {
  return {Reason::kStoreCorrupt,
          "record of family " + std::string(kFamilyNames[static_cast<size_t>(family)]) +
              ", key 0x" + to_hex(key) + ": does not read as a record of it"};
}

std::string encode_header(const StoreHeader& header) {
  store::v1::StoreHeader message;
  message.set_schema(header.schema);
  message.set_store_id(id_bytes(header.meta.store_id));
  message.set_epoch(header.meta.epoch);
  message.set_written_by(header.written_by);
  message.set_origin_inode(header.origin.inode);
  message.set_origin_born_nanos(header.origin.born_nanos);
  return message.SerializeAsString();
}

Result<StoreHeader> decode_header(std::string_view value) {
  store::v1::StoreHeader message;
  StoreHeader header;
  if (!parse(value, message) || message.schema() == 0 ||
      !read_id(message.store_id(), header.meta.store_id))
    return refuse_record(Family::kMeta, kHeaderKey);
  header.schema = message.schema();
  header.meta.epoch = message.epoch();
  header.written_by = message.written_by();
  header.origin = {message.origin_inode(), message.origin_born_nanos()};
  return header;
}

std::string encode_clock(Time now) {
  store::v1::ClockRecord message;
  message.set_millis(now.millis);
  return message.SerializeAsString();
}

Result<Time> decode_clock(std::string_view value) {
  store::v1::ClockRecord message;
  if (!parse(value, message)) return refuse_record(Family::kMeta, kClockKey);
  return Time{message.millis()};
}

struct Codec::Messages {
  store::v1::NamespaceRecord of_namespace;
  store::v1::SessionRecord of_session;
  store::v1::PoolRecord of_pool;
  store::v1::ReplicaRecord of_replica;
  store::v1::ReservationRecord of_reservation;
  store::v1::LeaseRecord of_lease;
  store::v1::OperationRecord of_operation;
  store::v1::JobRecord of_job;
  store::v1::PinRecord of_pin;
  store::v1::EvictionRecord of_eviction;

  store::v1::NamespaceRecord& of(const Namespace&) { return of_namespace; }
  store::v1::SessionRecord& of(const Session&) { return of_session; }
  store::v1::PoolRecord& of(const Pool&) { return of_pool; }
  store::v1::ReplicaRecord& of(const Replica&) { return of_replica; }
  store::v1::ReservationRecord& of(const Reservation&) { return of_reservation; }
  store::v1::LeaseRecord& of(const Lease&) { return of_lease; }
  store::v1::OperationRecord& of(const Operation&) { return of_operation; }
  store::v1::JobRecord& of(const Job&) { return of_job; }
  store::v1::PinRecord& of(const Pin&) { return of_pin; }
  store::v1::EvictionRecord& of(const EvictionSetting&) { return of_eviction; }
};

namespace {

// Records that have a message; the others are soft, or the header's.
template <class R>
constexpr bool kHasMessage =
    std::is_same_v<R, Namespace> || std::is_same_v<R, Session> || std::is_same_v<R, Pool> ||
    std::is_same_v<R, Replica> || std::is_same_v<R, Reservation> || std::is_same_v<R, Lease> ||
    std::is_same_v<R, Operation> || std::is_same_v<R, Job> || std::is_same_v<R, Pin> ||
    std::is_same_v<R, EvictionSetting>;

bool is_part_of_reservation(const RecordValue& value) {
  const Replica* replica = std::get_if<Replica>(&value);
  return replica && replica->in_reservation;
}

}  // namespace

Codec::Codec() : messages_(std::make_unique<Messages>()) {}
Codec::~Codec() = default;

std::optional<EncodedChange> Codec::encode(const Mutation& mutation) {
  const std::optional<Family> family = family_of(mutation.key.kind);
  if (!family || is_part_of_reservation(mutation.value)) return std::nullopt;

  key_.clear();
  if (mutation.key.kind == RecordKind::kEvictionSetting)
    key_ = kEvictionKey;
  else
    append_id(mutation.key.first, key_);
  if (mutation.key.kind == RecordKind::kOperation) append_id(mutation.key.second, key_);
  if (mutation.key.kind == RecordKind::kReservation) key_.push_back(kKeySuffix);

  value_.clear();
  visit_record(mutation.value, [this]<class R>(const R& record) {
    if constexpr (kHasMessage<R>) {
      auto& message = messages_->of(record);
      message.Clear();
      write(record, message);
      message.AppendToString(&value_);
    }
  });
  return EncodedChange{*family, key_, value_, std::holds_alternative<Forgotten>(mutation.value)};
}

Result<Mutation> Codec::decode(Family family, std::string_view key, std::string_view value) {
  std::optional<Mutation> decoded;
  const auto decode_as = [&](auto record, size_t key_bytes) {
    auto& message = messages_->of(record);
    if (key.size() == key_bytes && parse(value, message) && read(message, record))
      decoded = put_of(std::move(record));
  };
  if (family == Family::kMeta && key == kEvictionKey) {
    decode_as(EvictionSetting{}, key.size());
    return decoded ? Result<Mutation>(*std::move(decoded)) : refuse_record(Family::kMeta, key);
  }
  if (key.size() < kIdKeyBytes) return refuse_record(family, key);
  const uint64_t id = id_at(key, 0);

  switch (family) {
    case Family::kNamespaces: {
      Namespace record;
      record.id = NamespaceId(id);
      decode_as(std::move(record), kIdKeyBytes);
      break;
    }
    case Family::kSessions: {
      Session record;
      record.id = SessionId(id);
      decode_as(std::move(record), kIdKeyBytes);
      break;
    }
    case Family::kPools: {
      Pool record;
      record.id = PoolId(id);
      decode_as(std::move(record), kIdKeyBytes);
      break;
    }
    case Family::kReplicas: {
      if (key.size() == kIdKeyBytes + 1 && key.back() == kKeySuffix) {
        Reservation record;
        record.first = ReplicaId(id);
        decode_as(std::move(record), kIdKeyBytes + 1);
      } else {
        Replica record;
        record.id = ReplicaId(id);
        decode_as(record, kIdKeyBytes);
      }
      break;
    }
    case Family::kLeases: {
      Lease record;
      record.id = LeaseId(id);
      decode_as(std::move(record), kIdKeyBytes);
      break;
    }
    case Family::kOperations: {
      if (key.size() != 2 * kIdKeyBytes) break;
      Operation record;
      record.session = SessionId(id);
      record.number = id_at(key, kIdKeyBytes);
      decode_as(std::move(record), 2 * kIdKeyBytes);
      break;
    }
    case Family::kJobs: {
      Job record;
      record.id = JobId(id);
      decode_as(record, kIdKeyBytes);
      break;
    }
    case Family::kPins: {
      Pin record;
      record.replica = ReplicaId(id);
      decode_as(record, kIdKeyBytes);
      break;
    }
    case Family::kMeta:
    case Family::kTasks:
    case Family::kRuns:
      break;  // header and runs are read apart; no task is written by this schema
  }
  if (!decoded) return refuse_record(family, key);
  return *std::move(decoded);
}

}  // namespace berth
