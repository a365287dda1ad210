#include "server/store/run_codec.h"

#include <catch2/catch.hpp>
#include <string>

#include "berth/store/v1/records.pb.h"
#include "tests/unit/store/ready_replicas.h"

namespace berth {
namespace {

using testing::first_record;
using testing::first_records;
using testing::in_state;
using testing::ready_replica;
using testing::RecordSamples;
using testing::same;

// As items of one Reserve mostly are: one size, one pool, side by side.
std::vector<Mutation> alike(std::vector<Mutation> run) {
  for (Mutation& mutation : run) {
    Replica& replica = std::get<Replica>(mutation.value);
    replica.pool = PoolId(7);
    replica.size_bytes = 4096;
    replica.offset = (mutation.key.first - run[0].key.first) * 4096;
    replica.key.shard = replica.key.part = 0;
  }
  return run;
}

TEST_CASE("a run reads back as the replicas that were written", "[store][runs]") {
  RunCodec codec;
  for (const uint64_t seed : testing::sample_seeds(100)) {
    INFO("replay with BERTH_SEED=" << seed);
    RecordSamples samples(seed);
    std::vector<Mutation> run;
    const uint64_t first = 1 + samples.number() / 2;
    const uint64_t count = 1 + samples.below(kRunReplicasMax);
    const uint32_t in_namespace = 1 + samples.number32() / 2;
    for (uint64_t i = 0; i < count; ++i)
      run.push_back(first_record(ready_replica(samples, first + i, in_namespace)));
    if (samples.flag()) run = alike(run);
    std::vector<Replica> read;
    REQUIRE(codec.decode(first, codec.encode(run), read));
    REQUIRE(read.size() == run.size());
    for (size_t i = 0; i < read.size(); ++i) CHECK(same(read[i], std::get<Replica>(run[i].value)));
  }
}

TEST_CASE("a run of items that are alike is little more than its digests", "[store][runs]") {
  RunCodec codec;
  std::vector<Mutation> run = alike(first_records(1000, 128));
  for (Mutation& mutation : run) std::get<Replica>(mutation.value).key.digest.bytes[31] = 1;
  CHECK(codec.encode(run).size() < 128 * (kDigestBytesMax + 3));
}

TEST_CASE("a run is of ready first records of one namespace whose ids follow each other",
          "[store][runs]") {
  std::vector<Mutation> run = first_records(10, 20);
  CHECK(run_length(run) == 20);
  SECTION("a gap ends it") {
    run.erase(run.begin() + 5);
    CHECK(run_length(run) == 5);
  }
  SECTION("another namespace ends it") {
    std::get<Replica>(run[6].value).key.namespace_number = 2;
    CHECK(run_length(run) == 6);
  }
  SECTION("a replica that had a record before ends it") {
    run[7].is_first_record = false;
    CHECK(run_length(run) == 7);
  }
  SECTION("a replica that retires at once ends it") {
    run[8] = in_state(run[8], ReplicaState::kRetiring, Why::kPoolDraining);
    run[8].is_first_record = true;
    CHECK(run_length(run) == 8);
  }
  SECTION("a replica of an open reservation ends it") {
    std::get<Replica>(run[9].value).in_reservation = true;
    CHECK(run_length(run) == 9);
  }
  SECTION("another record ends it") {
    run[10] = RecordSamples(1).one_of_each()[0];
    CHECK(run_length(run) == 10);
  }
  SECTION("it has a bound") { CHECK(run_length(first_records(1, 300)) == kRunReplicasMax); }
  SECTION("something else begins none") {
    run[0].is_first_record = false;
    CHECK(run_length(run) == 0);
  }
}

TEST_CASE("a run that cannot be is refused", "[store][runs]") {
  RunCodec codec;
  store::v1::RunRecord run;
  run.set_count(3);
  run.set_namespace_id(1);
  run.set_digests(std::string(3 * 16, 'd'));
  run.add_shards(0);
  run.add_parts(0);
  run.add_pools(1);
  run.add_sizes(4096);
  for (int i = 0; i < 3; ++i) run.add_steps(4096);
  uint64_t first = 1;
  const auto reads = [&] {
    std::vector<Replica> replicas;
    return codec.decode(first, run.SerializeAsString(), replicas);
  };
  REQUIRE(reads());
  SECTION("no items") { run.set_count(0); }
  SECTION("more items than a run may have") {
    run.set_count(129);
    run.set_digests(std::string(129 * 16, 'd'));
    for (int i = 3; i < 129; ++i) run.add_steps(0);
  }
  SECTION("ids past the last one") { first = UINT64_MAX - 1; }
  SECTION("no namespace") { run.clear_namespace_id(); }
  SECTION("digests of no even width") { run.mutable_digests()->push_back('d'); }
  SECTION("digests of 15 bytes") { run.set_digests(std::string(3 * 15, 'd')); }
  SECTION("digests of 33 bytes") { run.set_digests(std::string(3 * 33, 'd')); }
  SECTION("no pool") { run.set_pools(0, 0); }
  SECTION("a pool for two of three") { run.add_pools(1); }
  SECTION("no sizes") { run.clear_sizes(); }
  SECTION("a size for two of three") { run.add_sizes(1); }
  SECTION("an offset for two of three") { run.mutable_steps()->RemoveLast(); }
  SECTION("a shard past 16 bits") { run.set_shards(0, 65536); }
  SECTION("a part for four of three") {
    for (int i = 0; i < 3; ++i) run.add_parts(0);
  }
  CHECK_FALSE(reads());
  std::vector<Replica> replicas;
  CHECK_FALSE(codec.decode(1, "\xFF\xFF\xFF", replicas));
}

TEST_CASE("what became of a run's items reads back", "[store][runs]") {
  RunCodec codec;
  for (const uint64_t seed : testing::sample_seeds(100)) {
    INFO("replay with BERTH_SEED=" << seed);
    RecordSamples samples(seed);
    Run run;
    run.count = static_cast<uint32_t>(1 + samples.below(kRunReplicasMax));
    for (size_t i = 0; i < run.count; ++i) {
      if (samples.below(3) == 0) run.change(i, ReplicaState::kRetiring, Why::kMadeRoom);
      if (samples.below(3) == 0) run.change(i, ReplicaState::kQuarantined, Why::kLedgerMismatch);
      if (samples.below(5) == 0) run.change(i, ReplicaState::kReady, Why::kNone);
      if (samples.below(3) == 0) run.drop(i);
    }
    Run read;
    read.count = run.count;
    REQUIRE(codec.decode_changes(codec.encode_changes(run), read));
    CHECK(read.gone == run.gone);
    CHECK(read.changes == run.changes);
    CHECK((run.gone & run.changed).none());
  }
}

TEST_CASE("changes that cannot be are refused", "[store][runs]") {
  RunCodec codec;
  store::v1::RunChangesRecord changes;
  changes.set_gone("\x03");                             // items 0 and 1
  changes.set_changed(std::string("\x02\x03\x01", 3));  // item 2 is RETIRING, evicted
  const auto reads = [&] {
    Run run;
    run.count = 5;
    return codec.decode_changes(changes.SerializeAsString(), run);
  };
  REQUIRE(reads());
  SECTION("an item past the run is gone") { changes.set_gone("\x23"); }
  SECTION("an item past the run has changed") { changes.mutable_changed()->at(0) = 5; }
  SECTION("an item has changed that is gone") { changes.mutable_changed()->at(0) = 1; }
  SECTION("an item has changed twice") { changes.mutable_changed()->append("\x02\x04\x06"); }
  SECTION("a state that no replica has") { changes.mutable_changed()->at(1) = 9; }
  SECTION("RESERVED") { changes.mutable_changed()->at(1) = 1; }
  SECTION("an unknown reason") { changes.mutable_changed()->at(2) = 99; }
  SECTION("half a change") { changes.mutable_changed()->pop_back(); }
  CHECK_FALSE(reads());
}

TEST_CASE("runs that touch do not overlap, and a gone item is in no run", "[store][runs]") {
  RunIndex index;
  index.insert({.first = 10, .count = 5});
  index.insert({.first = 1, .count = 9});
  CHECK(index.overlaps(14, 1));
  CHECK(index.overlaps(5, 100));
  CHECK(index.overlaps(0, 2));
  CHECK_FALSE(index.overlaps(15, 100));
  CHECK_FALSE(index.overlaps(0, 1));
  REQUIRE(index.find(12));
  CHECK(index.find(12)->first == 10);
  CHECK(index.find(9)->first == 1);
  CHECK_FALSE(index.find(15));
  CHECK_FALSE(index.find(0));
  index.find(12)->drop(2);
  CHECK_FALSE(index.find(12));
  CHECK(index.overlaps(12, 1));
  index.erase(10);
  CHECK_FALSE(index.find(11));
  CHECK(index.find(9));
}

}  // namespace
}  // namespace berth
