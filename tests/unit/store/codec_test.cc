#include "server/store/codec.h"

#include <catch2/catch.hpp>
#include <string>

#include "berth/store/v1/records.pb.h"
#include "tests/unit/store/record_samples.h"

namespace berth {
namespace {

using testing::RecordSamples;
using testing::same;

struct Written {
  Family family;
  std::string key;
  std::string value;
};

Written encoded(Codec& codec, const Mutation& mutation) {
  const auto change = codec.encode(mutation);
  REQUIRE(change);
  return {change->family, std::string(change->key), std::string(change->value)};
}

TEST_CASE("every durable record reads back as it was written", "[store][codec]") {
  Codec codec;
  for (const uint64_t seed : testing::sample_seeds(200)) {
    RecordSamples samples(seed);
    for (const Mutation& mutation : samples.one_of_each()) {
      INFO("replay with BERTH_SEED=" << seed << ", kind " << static_cast<int>(mutation.key.kind));
      const Written written = encoded(codec, mutation);
      const Result<Mutation> read = codec.decode(written.family, written.key, written.value);
      REQUIRE(read);
      CHECK(same(*read, mutation));
    }
  }
}

TEST_CASE("a digest that ends in zeros reads back whole, at every width", "[store][codec]") {
  Codec codec;
  RecordSamples samples(7);
  for (size_t bytes = kDigestBytesMin; bytes <= kDigestBytesMax; ++bytes) {
    Replica replica = samples.a_replica();
    replica.key = samples.key(1, bytes);
    replica.key.digest.bytes[bytes - 1] = 0;
    const Written written = encoded(codec, put_of(replica));
    CHECK(same(codec.decode(written.family, written.key, written.value).value(), put_of(replica)));
  }
}

TEST_CASE("what an open reservation stands for is not written by itself", "[store][codec]") {
  Codec codec;
  Replica replica = RecordSamples(1).a_replica();
  replica.in_reservation = true;
  CHECK_FALSE(codec.encode(put_of(replica)));
  replica.in_reservation = false;
  CHECK(codec.encode(put_of(replica)));
}

TEST_CASE("soft records are passed over", "[store][codec]") {
  Codec codec;
  CHECK_FALSE(codec.encode(put_of(Presence{.session = SessionId(1)})));
  CHECK_FALSE(codec.encode(put_of(PoolReport{.pool = PoolId(1)})));
  CHECK_FALSE(codec.encode(put_of(SeenReplica{ReplicaId(1), 2})));
  CHECK_FALSE(codec.encode(put_of(SeenLease{LeaseId(1), 2})));
  CHECK_FALSE(codec.encode(Mutation{RecordTraits<Presence>::key(SessionId(1)), Forgotten{}}));
}

TEST_CASE("forgetting a record names the key that it was written under", "[store][codec]") {
  Codec codec;
  for (const Mutation& mutation : RecordSamples(3).one_of_each()) {
    const Written written = encoded(codec, mutation);
    const auto forgotten = codec.encode(Mutation{mutation.key, Forgotten{}});
    REQUIRE(forgotten);
    CHECK(forgotten->is_forgotten);
    CHECK(forgotten->family == written.family);
    CHECK(forgotten->key == written.key);
  }
}

TEST_CASE("keys sort as ids do, and a reservation lies behind its first replica",
          "[store][codec]") {
  Codec codec;
  Replica replica = RecordSamples(1).a_replica();
  Reservation reservation = RecordSamples(1).a_reservation();
  std::string last;
  for (const uint64_t id :
       {uint64_t{1}, uint64_t{255}, uint64_t{256}, uint64_t{1} << 40, (uint64_t{3} << 40) + 1}) {
    replica.id = ReplicaId(id);
    reservation.first = ReplicaId(id);
    const std::string of_replica = encoded(codec, put_of(replica)).key;
    const std::string of_reservation = encoded(codec, put_of(reservation)).key;
    CHECK(last < of_replica);
    CHECK(of_replica < of_reservation);
    last = of_reservation;
  }
}

TEST_CASE("a record that cannot be is refused, naming its family and key", "[store][codec]") {
  Codec codec;
  const std::string key(8, '\x01');
  const auto refused = [&](Family family, const google::protobuf::MessageLite& message) {
    const auto read = codec.decode(family, key, message.SerializeAsString());
    REQUIRE_FALSE(read);
    CHECK(read.error().reason == Reason::kStoreCorrupt);
    return read.error().message;
  };
  store::v1::ReplicaRecord replica;
  replica.set_namespace_id(1);
  replica.set_digest(std::string(16, 'd'));
  replica.set_pool(1);
  replica.set_state(2);
  REQUIRE(codec.decode(Family::kReplicas, key, replica.SerializeAsString()));

  SECTION("a state that no replica has") {
    replica.set_state(9);
    CHECK_THAT(refused(Family::kReplicas, replica),
               Catch::Contains("replicas") && Catch::Contains("0x0101010101010101"));
  }
  SECTION("RESERVED outside a reservation") {
    replica.set_state(1);
    refused(Family::kReplicas, replica);
  }
  SECTION("a digest of 15 bytes") {
    replica.set_digest(std::string(15, 'd'));
    refused(Family::kReplicas, replica);
  }
  SECTION("a shard past 16 bits") {
    replica.set_shard(65536);
    refused(Family::kReplicas, replica);
  }
  SECTION("no pool") {
    replica.set_pool(0);
    refused(Family::kReplicas, replica);
  }
  SECTION("a pool without pages") { refused(Family::kPools, store::v1::PoolRecord()); }
  SECTION("a session without a role") { refused(Family::kSessions, store::v1::SessionRecord()); }
  SECTION("a token of 15 bytes") {
    store::v1::SessionRecord session;
    session.set_role(1);
    session.set_token(std::string(15, 't'));
    refused(Family::kSessions, session);
  }
  SECTION("a job of no kind") { refused(Family::kJobs, store::v1::JobRecord()); }
  SECTION("columns of different length") {
    store::v1::ReservationRecord reservation;
    reservation.set_granted(1);
    reservation.set_namespace_id(1);
    reservation.add_index(0);
    reservation.set_digests(std::string(16, 'd'));
    reservation.add_shards(0);
    reservation.add_pools(1);
    reservation.add_sizes(1);
    const auto read = [&] {
      return codec.decode(Family::kReplicas, key + '\xFF', reservation.SerializeAsString());
    };
    CHECK_FALSE(read());
    reservation.add_parts(0);
    CHECK(read());
  }
  SECTION("more items than digests") {
    store::v1::ReservationRecord reservation;
    reservation.set_granted(UINT32_MAX);
    reservation.set_namespace_id(1);
    reservation.set_count(UINT32_MAX);
    reservation.add_shards(0);
    reservation.add_parts(0);
    reservation.add_pools(1);
    reservation.add_sizes(1);
    CHECK_FALSE(codec.decode(Family::kReplicas, key + '\xFF', reservation.SerializeAsString()));
  }
  SECTION("more pools than answers") {
    store::v1::OperationRecord operation;
    operation.set_kind(1);
    operation.set_codes("12");
    operation.add_pools(1);
    operation.set_pool_count(2);
    CHECK(codec.decode(Family::kOperations, key + key, operation.SerializeAsString()));
    operation.set_pool_count(3);
    CHECK_FALSE(codec.decode(Family::kOperations, key + key, operation.SerializeAsString()));
  }
  SECTION("a key that is cut") {
    CHECK_FALSE(codec.decode(Family::kReplicas, "short", replica.SerializeAsString()));
    CHECK_FALSE(
        codec.decode(Family::kOperations, key, store::v1::OperationRecord().SerializeAsString()));
  }
  SECTION("bytes that are no message") {
    CHECK_FALSE(codec.decode(Family::kReplicas, key, "\xFF\xFF\xFF"));
  }
  SECTION("a task, which this schema does not write") {
    CHECK_FALSE(codec.decode(Family::kTasks, key, ""));
  }
}

TEST_CASE("columns that an older berthd wrote whole are read", "[store][codec]") {
  Codec codec;
  RecordSamples samples(21);
  Reservation reservation = samples.a_reservation();
  reservation.granted = 3;
  reservation.items.clear();
  store::v1::ReservationRecord old;
  old.set_session(reservation.session.value());
  old.set_operation(reservation.operation);
  old.set_granted(3);
  old.set_deadline_millis(reservation.deadline.millis);
  old.set_write_within_millis(reservation.write_within.millis);
  old.set_quarantined(reservation.quarantined);
  old.set_namespace_id(4);
  for (uint32_t index = 0; index < 3; ++index) {
    reservation.items.push_back({index, samples.key(4, 16), PoolId(9), 4096});
    const ObjectKey& key = reservation.items.back().key;
    old.add_index(index);
    old.mutable_digests()->append(reinterpret_cast<const char*>(key.digest.bytes.data()), 16);
    old.add_shards(key.shard);
    old.add_parts(key.part);
    old.add_pools(9);
    old.add_sizes(4096);
  }
  const Written now = encoded(codec, put_of(reservation));
  CHECK(same(codec.decode(now.family, now.key, old.SerializeAsString()).value(),
             put_of(reservation)));

  Lease lease = samples.a_lease();
  lease.replicas = {ReplicaId(5), ReplicaId(3), ReplicaId(1000)};
  const Written of_lease = encoded(codec, put_of(lease));
  store::v1::LeaseRecord old_lease;
  REQUIRE(old_lease.ParseFromString(of_lease.value));
  old_lease.clear_steps();
  for (const ReplicaId id : lease.replicas) old_lease.add_replicas(id.value());
  CHECK(same(codec.decode(Family::kLeases, of_lease.key, old_lease.SerializeAsString()).value(),
             put_of(lease)));

  Operation operation = samples.an_operation();
  operation.codes.assign(5, 1);
  operation.pools.assign(4, PoolId(9));
  const Written of_operation = encoded(codec, put_of(operation));
  store::v1::OperationRecord old_operation;
  REQUIRE(old_operation.ParseFromString(of_operation.value));
  CHECK(old_operation.pools_size() == 1);
  old_operation.clear_pool_count();
  for (int i = 1; i < 4; ++i) old_operation.add_pools(9);
  CHECK(same(codec.decode(of_operation.family, of_operation.key, old_operation.SerializeAsString())
                 .value(),
             put_of(operation)));
}

TEST_CASE("a column of one value is every item's", "[store][codec]") {
  Codec codec;
  RecordSamples samples(22);
  Reservation reservation = samples.a_reservation();
  reservation.granted = 50;
  reservation.items.clear();
  for (uint32_t index = 0; index < 50; ++index) {
    ObjectKey key = samples.key(4, 16);
    key.shard = key.part = 0;
    reservation.items.push_back({index, key, PoolId(9), 4096});
  }
  SECTION("all items are open") {}
  SECTION("some are closed") { reservation.items.erase(reservation.items.begin() + 7); }
  SECTION("only the last is open") {
    reservation.items.erase(reservation.items.begin(), reservation.items.begin() + 49);
  }
  const Written written = encoded(codec, put_of(reservation));
  CHECK(written.value.size() < 64 + reservation.items.size() * 18);
  CHECK(
      same(codec.decode(written.family, written.key, written.value).value(), put_of(reservation)));
}

TEST_CASE("header and clock read back", "[store][codec]") {
  const StoreHeader header{3, {{7, 8}, 21}, "0.1.0", {11, 12}};
  const Result<StoreHeader> read = decode_header(encode_header(header));
  REQUIRE(read);
  CHECK(read->schema == 3);
  CHECK(same(read->meta, header.meta));
  CHECK(read->written_by == "0.1.0");
  CHECK(read->origin == header.origin);
  CHECK(decode_clock(encode_clock(Time{123456789}))->millis == 123456789);
  CHECK_FALSE(decode_header(""));  // no schema
  CHECK_FALSE(decode_clock("\xFF"));
}

}  // namespace
}  // namespace berth
