#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/pool/ledger_rig.h"
#include "worker/pool/ledger.h"

namespace berth::pool {
namespace {

std::vector<ReplicaId> ids_of(const LedgerChunkView& chunk) {
  std::vector<ReplicaId> ids;
  for (const LedgerEntry* entry : chunk.entries) ids.push_back(entry->replica);
  return ids;
}

TEST_CASE("the ledger is reported by pool and namespace, in order of id, in bounded chunks",
          "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(
      rig.ledger.add_pool({.pool = kOtherPool, .page_bytes = kPage, .capacity_bytes = 4 * kPage}));
  rig.store(5);
  rig.store(2);
  rig.store(9);
  LedgerGrant second_namespace = rig.grant(3);
  second_namespace.name_space.fingerprint = {0, 1};
  REQUIRE(rig.ledger.allocate(second_namespace).code == AllocateCode::kAllocated);
  LedgerGrant other_pool = rig.grant(1);
  other_pool.pool = kOtherPool;
  REQUIRE(rig.ledger.allocate(other_pool).code == AllocateCode::kAllocated);

  const auto order = rig.ledger.reattach_order();
  size_t next = 0;
  struct Row {
    PoolId pool;
    std::vector<ReplicaId> ids;
  };
  for (const Row& row : {Row{kPool, replicas({2, 5})}, Row{kPool, replicas({9})},
                         Row{kPool, replicas({3})}, Row{kOtherPool, replicas({1})}}) {
    const LedgerChunkView chunk = rig.ledger.reattach_chunk(order, next, 2);
    CHECK(chunk.pool == row.pool);
    CHECK(ids_of(chunk) == row.ids);
  }
  CHECK(rig.ledger.reattach_chunk(order, next, 2).entries.empty());
}

TEST_CASE("what went during the report is skipped", "[pool][ledger]") {
  LedgerRig rig;
  for (const uint64_t id : {1u, 2u, 3u}) REQUIRE(rig.allocate(id) == AllocateCode::kAllocated);
  const auto order = rig.ledger.reattach_order();
  rig.ledger.abort(kAnn, replica(1), WriterSpan::kReturned);
  rig.ledger.abort(kAnn, replica(2), WriterSpan::kMayBeOut);  // forgotten
  size_t next = 0;
  CHECK(ids_of(rig.ledger.reattach_chunk(order, next, 4096)) == replicas({3}));
  CHECK(next == order.size());
}

TEST_CASE("each verdict does to each state what the design says", "[pool][ledger]") {
  using State = LedgerState;
  using Code = VerdictCode;
  constexpr State kGone{};  // not held afterwards
  struct Row {
    State before;
    Verdict verdict;
    Code code;
    State after;
    bool acknowledged = false;
  };
  const std::vector<Row> rows{
      {State::kWriting, Verdict::kKeep, Code::kKept, State::kWriting},
      {State::kWritten, Verdict::kKeep, Code::kKept, State::kWritten},
      {State::kSealed, Verdict::kKeep, Code::kKept, State::kSealed},
      {State::kQuarantined, Verdict::kKeep, Code::kKept, State::kQuarantined},
      {State::kReclaimed, Verdict::kKeep, Code::kNonsense, State::kReclaimed},
      {State::kWriting, Verdict::kFree, Code::kWaiting, State::kForgotten},
      {State::kWritten, Verdict::kFree, Code::kFreed, kGone},
      {State::kSealed, Verdict::kFree, Code::kFreed, kGone},
      {State::kQuarantined, Verdict::kFree, Code::kFreed, kGone},
      {State::kReclaimed, Verdict::kFree, Code::kFreed, kGone},
      {State::kWriting, Verdict::kReclaim, Code::kWaiting, State::kWriting},
      {State::kWritten, Verdict::kReclaim, Code::kFreed, State::kReclaimed, true},
      {State::kSealed, Verdict::kReclaim, Code::kFreed, State::kReclaimed, true},
      {State::kQuarantined, Verdict::kReclaim, Code::kFreed, State::kReclaimed, true},
      {State::kReclaimed, Verdict::kReclaim, Code::kFreed, State::kReclaimed, true},
      {State::kWriting, Verdict::kAdopted, Code::kNonsense, State::kWriting},
      {State::kWritten, Verdict::kAdopted, Code::kNonsense, State::kWritten},
      {State::kSealed, Verdict::kAdopted, Code::kKept, State::kSealed},
      {State::kReclaimed, Verdict::kAdopted, Code::kNonsense, State::kReclaimed},
      {State::kWriting, Verdict::kQuarantine, Code::kQuarantined, State::kQuarantined},
      {State::kSealed, Verdict::kQuarantine, Code::kQuarantined, State::kQuarantined},
      {State::kReclaimed, Verdict::kQuarantine, Code::kNonsense, State::kReclaimed},
  };
  for (const Row& row : rows) {
    INFO("state " << name_of(row.before) << ", verdict " << static_cast<int>(row.verdict));
    LedgerRig rig;
    if (row.before == State::kWriting) {
      REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
    } else if (row.before == State::kWritten) {
      REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
      REQUIRE(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kWritten);
    } else {
      rig.store(1);
    }
    if (row.before == State::kQuarantined) rig.ledger.apply(Verdict::kQuarantine, replica(1));
    if (row.before == State::kReclaimed) {
      rig.reclaim(1);
      rig.ledger.take_acknowledgements();
    }
    REQUIRE(rig.state(1) == row.before);

    CHECK(rig.ledger.apply(row.verdict, replica(1)) == row.code);
    CHECK(rig.is_held(1) == (row.after != kGone));
    if (row.after != kGone) CHECK(rig.state(1) == row.after);
    CHECK(rig.ledger.take_acknowledgements() == (row.acknowledged ? replicas({1}) : replicas({})));
  }
}

TEST_CASE("a freed replica keeps its pages until its readers have closed, then goes silently",
          "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  rig.open(1, kBob, {1});
  CHECK(rig.ledger.apply(Verdict::kFree, replica(1)) == VerdictCode::kWaiting);
  CHECK(rig.used_pages() == 1);
  CHECK(rig.allocate(1) == AllocateCode::kDuplicate);
  rig.ledger.close_spans(lease(1));
  CHECK(rig.ledger.take_acknowledgements().empty());
  CHECK_FALSE(rig.is_held(1));
}

TEST_CASE("a reclaim that the server forgot is over, and the replica is readable again",
          "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  rig.open(1, kBob, {1});
  rig.reclaim(1);
  CHECK(rig.ledger.apply(Verdict::kKeep, replica(1)) == VerdictCode::kKept);
  rig.open(2, kBob, {1});
  rig.ledger.close_spans(lease(1));
  rig.ledger.close_spans(lease(2));
  CHECK(rig.ledger.take_acknowledgements().empty());
  CHECK(rig.state(1) == LedgerState::kSealed);
}

TEST_CASE("a quarantined replica takes no reader and no commit, and ends by a reclaim",
          "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
  CHECK(rig.ledger.apply(Verdict::kQuarantine, replica(1)) == VerdictCode::kQuarantined);
  CHECK(rig.usage().quarantined_bytes == kPage);
  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kClosed);
  CHECK_FALSE(rig.ledger.sealed(replica(1)));
  const SpanRequest span = rig.span_of(1);
  CHECK(*rig.ledger.open_spans(lease(1), kBob, 1, {&span, 1}) ==
        std::vector<SpanCode>{SpanCode::kNotReadable});
  rig.reclaim(1);
  CHECK(rig.ledger.take_acknowledgements() == replicas({1}));
}

TEST_CASE("a verdict on what is not held says so", "[pool][ledger]") {
  LedgerRig rig;
  for (const Verdict verdict :
       {Verdict::kKeep, Verdict::kFree, Verdict::kReclaim, Verdict::kAdopted, Verdict::kQuarantine})
    CHECK(rig.ledger.apply(verdict, replica(1)) == VerdictCode::kUnknown);
  CHECK(rig.ledger.entry_count() == 0);
}

}  // namespace
}  // namespace berth::pool
