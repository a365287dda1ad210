#include "worker/pool/ledger.h"

#include <catch2/catch.hpp>

#include "tests/unit/pool/ledger_rig.h"

namespace berth::pool {
namespace {

TEST_CASE("a granted replica takes whole pages until its reclaim was confirmed", "[pool][ledger]") {
  LedgerRig rig;
  const Allocation place = rig.ledger.allocate(rig.grant(1, kPage + 1));
  REQUIRE(place.code == AllocateCode::kAllocated);
  CHECK(place.offset == 0);
  CHECK(rig.state(1) == LedgerState::kWriting);
  CHECK(rig.usage().writing_bytes == 2 * kPage);
  CHECK(rig.ledger.find(replica(1))->digest() == "digest 000000001");
  CHECK(rig.ledger.namespace_of(*rig.ledger.find(replica(1))) == kNamespace);

  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kWritten);
  CHECK(rig.usage().written_bytes == 2 * kPage);
  CHECK(rig.ledger.sealed(replica(1)));
  CHECK(rig.usage().sealed_bytes == 2 * kPage);

  rig.reclaim(1);
  CHECK(rig.ledger.take_acknowledgements() == replicas({1}));
  CHECK(rig.state(1) == LedgerState::kReclaimed);
  CHECK(rig.used_pages() == 0);
  CHECK(rig.usage().largest_hole_bytes == 8 * kPage);

  rig.confirm(1);
  CHECK_FALSE(rig.is_held(1));
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("what the server grants wrongly is refused and changes nothing", "[pool][ledger]") {
  LedgerRig rig(8, 6);
  rig.store(1, 2 * kPage);
  const LedgerGrant good = rig.grant(2);

  LedgerGrant no_id = good;
  no_id.replica = ReplicaId();
  LedgerGrant empty = good;
  empty.size_bytes = 0;
  LedgerGrant short_digest = good;
  short_digest.digest = "fifteen bytes..";
  LedgerGrant long_digest = good;
  long_digest.digest = "thirty-three bytes, one too many.";
  long_digest.name_space.digest_bytes = 33;
  LedgerGrant elsewhere = good;
  elsewhere.pool = kOtherPool;
  LedgerGrant again = good;
  again.replica = replica(1);
  LedgerGrant huge = good;
  huge.size_bytes = UINT64_MAX;
  LedgerGrant over_budget = good;
  over_budget.size_bytes = 5 * kPage;  // fits the pool, not the budget

  struct Row {
    LedgerGrant grant;
    AllocateCode code;
  };
  for (const Row& row :
       {Row{no_id, AllocateCode::kBadGrant}, Row{empty, AllocateCode::kBadGrant},
        Row{short_digest, AllocateCode::kBadGrant}, Row{long_digest, AllocateCode::kBadGrant},
        Row{elsewhere, AllocateCode::kUnknownPool}, Row{again, AllocateCode::kDuplicate},
        Row{huge, AllocateCode::kOverLimit}, Row{over_budget, AllocateCode::kOverLimit}}) {
    CHECK(rig.ledger.allocate(row.grant).code == row.code);
    CHECK(rig.ledger.entry_count() == 1);
    CHECK(rig.used_pages() == 2);
    CHECK(rig.ledger.check_invariants() == "");
  }
}

TEST_CASE("free bytes without a hole are no_hole, and a hole again once neighbours went",
          "[pool][ledger][FC-62]") {
  LedgerRig rig(4);
  for (const uint64_t id : {1u, 2u, 3u, 4u}) rig.store(id);
  rig.reclaim(1);
  rig.reclaim(3);
  CHECK(rig.usage().free_bytes == 2 * kPage);
  CHECK(rig.usage().largest_hole_bytes == kPage);
  CHECK(rig.allocate(5, 2 * kPage) == AllocateCode::kNoHole);
  rig.reclaim(2);
  CHECK(rig.allocate(5, 2 * kPage) == AllocateCode::kAllocated);
}

TEST_CASE("aborting before or after the bytes were written frees the pages", "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
  REQUIRE(rig.allocate(2) == AllocateCode::kAllocated);
  REQUIRE(rig.ledger.written(kAnn, replica(2)) == WrittenCode::kWritten);
  CHECK(rig.ledger.abort(kAnn, replica(1), WriterSpan::kReturned));
  CHECK(rig.ledger.abort(kAnn, replica(2),
                         WriterSpan::kMayBeOut));  // written: nobody writes any more
  CHECK(rig.ledger.entry_count() == 0);
  CHECK(rig.used_pages() == 0);
  CHECK(rig.ledger.abort(kAnn, replica(1), WriterSpan::kReturned));  // idempotent
  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kUnknown);
}

TEST_CASE("an abort under a writer keeps the pages until the writer has stopped",
          "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
  CHECK_FALSE(rig.ledger.abort(kAnn, replica(1), WriterSpan::kMayBeOut));
  CHECK(rig.state(1) == LedgerState::kForgotten);
  CHECK(rig.usage().forgotten_bytes == kPage);
  CHECK(rig.ledger.reattach_order().empty());

  SECTION("because it finished") {
    CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kClosed);
  }
  SECTION("because it aborted") {
    CHECK(rig.ledger.abort(kAnn, replica(1), WriterSpan::kReturned));
  }
  SECTION("because it is dead") { CHECK(rig.ledger.drop_client(kAnn).empty()); }
  CHECK_FALSE(rig.is_held(1));
  CHECK(rig.used_pages() == 0);
  CHECK(rig.ledger.take_acknowledgements().empty());
}

TEST_CASE("only the client that reserved a replica finishes or aborts it", "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
  CHECK(rig.ledger.written(kBob, replica(1)) == WrittenCode::kUnknown);
  CHECK_FALSE(rig.ledger.abort(kBob, replica(1), WriterSpan::kReturned));
  CHECK(rig.state(1) == LedgerState::kWriting);
  CHECK(rig.ledger.find(replica(1))->writer_out);
}

TEST_CASE("finishing and sealing may be repeated, and sealing never skips the writing",
          "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
  CHECK_FALSE(rig.ledger.sealed(replica(1)));
  CHECK_FALSE(rig.ledger.sealed(replica(2)));
  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kWritten);
  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kWritten);
  CHECK(rig.ledger.sealed(replica(1)));
  CHECK(rig.ledger.sealed(replica(1)));
  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kWritten);
  CHECK(rig.state(1) == LedgerState::kSealed);
  CHECK_FALSE(rig.ledger.abort(kAnn, replica(1), WriterSpan::kReturned));
  CHECK(rig.state(1) == LedgerState::kSealed);
}

TEST_CASE("a span opens only where the ledger holds exactly that replica", "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  REQUIRE(rig.allocate(2) == AllocateCode::kAllocated);  // still being written
  rig.store(3);
  rig.reclaim(3);
  REQUIRE(rig.allocate(4) == AllocateCode::kAllocated);
  REQUIRE(rig.ledger.written(kAnn, replica(4)) == WrittenCode::kWritten);

  SpanRequest moved = rig.span_of(1);
  moved.offset += kPage;
  SpanRequest shorter = rig.span_of(1);
  shorter.size_bytes -= 1;
  SpanRequest elsewhere = rig.span_of(1);
  elsewhere.pool = kOtherPool;
  SpanRequest unknown = rig.span_of(1);
  unknown.replica = replica(99);
  SpanRequest reused = rig.span_of(4);  // lies where 3 lay
  reused.replica = replica(3);
  const std::vector<SpanRequest> items{moved,          shorter, elsewhere,      unknown,
                                       rig.span_of(2), reused,  rig.span_of(1), rig.span_of(4)};
  const auto codes = rig.ledger.open_spans(lease(1), kBob, 1, items);
  REQUIRE(codes);
  CHECK(*codes == std::vector<SpanCode>{SpanCode::kMoved, SpanCode::kMoved, SpanCode::kMoved,
                                        SpanCode::kUnknown, SpanCode::kNotReadable,
                                        SpanCode::kNotReadable, SpanCode::kOpen, SpanCode::kOpen});
  CHECK(rig.ledger.leases().at(lease(1)).replicas == replicas({1, 4}));
  CHECK(rig.usage().spans_out == 3);  // two readers and the writer of 2
}

TEST_CASE("a lease of which nothing could be opened is not kept", "[pool][ledger]") {
  LedgerRig rig;
  const SpanRequest unknown{.replica = replica(1), .pool = kPool, .offset = 0, .size_bytes = 1};
  const auto codes = rig.ledger.open_spans(lease(1), kBob, 1, {&unknown, 1});
  REQUIRE(codes);
  CHECK(rig.ledger.leases().empty());
  CHECK(rig.ledger.clients().empty());
  CHECK_FALSE(rig.ledger.close_spans(lease(1)));
}

TEST_CASE("a repeated open takes no second span, and another client's lease is refused",
          "[pool][ledger]") {
  LedgerRig rig;
  for (const uint64_t id : {1u, 2u, 3u}) rig.store(id);
  rig.open(1, kBob, {1, 2, 1});  // the same replica twice under one lease
  const std::vector<SpanRequest> again{rig.span_of(1), rig.span_of(3), rig.span_of(2),
                                       rig.span_of(1), rig.span_of(1)};
  const auto codes = rig.ledger.open_spans(lease(1), kBob, 1, again);
  REQUIRE(codes);
  CHECK(*codes == std::vector<SpanCode>{SpanCode::kOpen, SpanCode::kUnknown, SpanCode::kOpen,
                                        SpanCode::kOpen, SpanCode::kUnknown});
  CHECK(rig.ledger.find(replica(1))->readers == 2);
  const auto stolen = rig.ledger.open_spans(lease(1), kAnn, 1, again);
  REQUIRE_FALSE(stolen);
  CHECK(stolen.error().reason == Reason::kIdInUse);
  CHECK(rig.ledger.close_spans(lease(1)));
  CHECK(rig.usage().spans_out == 0);
}

TEST_CASE("a reclaim under readers is acknowledged exactly when the last one closes",
          "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  rig.open(1, kAnn, {1});
  rig.open(2, kBob, {1});
  rig.reclaim(1);
  CHECK(rig.ledger.take_acknowledgements().empty());
  CHECK(rig.used_pages() == 1);

  // The server said that it is going: nobody opens it any more.
  const SpanRequest late = rig.span_of(1);
  CHECK(*rig.ledger.open_spans(lease(3), kBob, 3, {&late, 1}) ==
        std::vector<SpanCode>{SpanCode::kNotReadable});

  rig.ledger.close_spans(lease(1));
  CHECK(rig.ledger.take_acknowledgements().empty());
  rig.ledger.close_spans(lease(2));
  CHECK(rig.ledger.take_acknowledgements() == replicas({1}));
  CHECK(rig.ledger.take_acknowledgements().empty());
  CHECK(rig.used_pages() == 0);
}

TEST_CASE("a reclaim may be repeated, and an id that is not held holds no memory",
          "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  rig.reclaim(1);
  rig.reclaim(1);
  rig.reclaim(99);
  CHECK(rig.ledger.take_acknowledgements() == replicas({1, 1, 99}));
  rig.confirm(1);
  rig.confirm(1);
  rig.confirm(99);
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("a confirmation touches only what was reclaimed", "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  rig.confirm(1);
  CHECK(rig.state(1) == LedgerState::kSealed);
}

TEST_CASE("a reclaim that waited for the writer is acknowledged when it finishes",
          "[pool][ledger]") {
  LedgerRig rig;
  REQUIRE(rig.allocate(1) == AllocateCode::kAllocated);
  rig.reclaim(1);
  CHECK(rig.ledger.take_acknowledgements().empty());
  CHECK(rig.ledger.written(kAnn, replica(1)) == WrittenCode::kClosed);
  CHECK(rig.ledger.take_acknowledgements() == replicas({1}));
  CHECK(rig.used_pages() == 0);
}

TEST_CASE("with a dead client go its spans, and nobody else's", "[pool][ledger][FC-01]") {
  LedgerRig rig;
  for (const uint64_t id : {1u, 2u}) rig.store(id);
  REQUIRE(rig.allocate(3, kPage, kAnn) == AllocateCode::kAllocated);
  REQUIRE(rig.allocate(4, kPage, kAnn) == AllocateCode::kAllocated);
  REQUIRE(rig.ledger.written(kAnn, replica(4)) == WrittenCode::kWritten);
  REQUIRE(rig.allocate(5, kPage, kBob) == AllocateCode::kAllocated);
  rig.open(1, kAnn, {1, 2});
  rig.open(2, kAnn, {2});
  rig.open(3, kBob, {2});
  CHECK(rig.ledger.spans_of(kAnn) ==
        ClientSpans{.writers = 1, .readers = 3, .leases = 2, .bytes = 4 * kPage});
  CHECK(rig.ledger.clients() == std::vector<SessionId>{kAnn, kBob});
  rig.reclaim(1);
  rig.reclaim(2);

  CHECK(rig.ledger.drop_client(kAnn) == replicas({3, 4}));
  CHECK(rig.ledger.take_acknowledgements() == replicas({1}));  // Bob still reads 2
  CHECK(rig.ledger.spans_of(kAnn) == ClientSpans{});
  CHECK(rig.ledger.spans_of(kBob) ==
        ClientSpans{.writers = 1, .readers = 1, .leases = 1, .bytes = 2 * kPage});
  CHECK(rig.ledger.open_of(kAnn) == replicas({3, 4}));  // the caller ends these operations
  CHECK(rig.ledger.abort(kAnn, replica(3), WriterSpan::kReturned));
  CHECK(rig.ledger.abort(kAnn, replica(4), WriterSpan::kReturned));
  CHECK(rig.ledger.clients() == std::vector<SessionId>{kBob});
  rig.ledger.close_spans(lease(3));
  CHECK(rig.ledger.take_acknowledgements() == replicas({2}));
}

TEST_CASE("every bound of the ledger refuses by name", "[pool][ledger]") {
  LedgerRig rig(8, 0,
                {.pages_max = 10,
                 .pools_max = 2,
                 .namespaces_max = 1,
                 .reclaimed_max = 1,
                 .leases_max = 1,
                 .reader_spans_max = 2});
  const auto refused = [&](const LedgerPool& pool) { return rig.ledger.add_pool(pool).error(); };
  CHECK(refused({.pool = kOtherPool, .page_bytes = kPage, .capacity_bytes = 3 * kPage}).reason ==
        Reason::kLimitReached);
  REQUIRE(rig.ledger.add_pool({.pool = kOtherPool, .page_bytes = kPage, .capacity_bytes = kPage}));
  CHECK(refused({.pool = PoolId(9), .page_bytes = kPage, .capacity_bytes = kPage}).reason ==
        Reason::kLimitReached);

  rig.store(1);
  rig.store(2);
  LedgerGrant other_namespace = rig.grant(3);
  other_namespace.name_space.fingerprint = {3, 4};
  CHECK(rig.ledger.allocate(other_namespace).code == AllocateCode::kLedgerFull);

  const std::vector<SpanRequest> three{rig.span_of(1), rig.span_of(2), rig.span_of(1)};
  CHECK(rig.ledger.open_spans(lease(1), kBob, 1, three).error().reason == Reason::kLimitReached);
  rig.open(1, kBob, {1});
  CHECK(rig.ledger.open_spans(lease(2), kBob, 2, {three.data(), 1}).error().reason ==
        Reason::kLimitReached);

  rig.reclaim(2);
  CHECK(rig.allocate(4) == AllocateCode::kLedgerFull);
  rig.confirm(2);
  CHECK(rig.allocate(4) == AllocateCode::kAllocated);
}

TEST_CASE("a pool is added once, with figures that make sense", "[pool][ledger]") {
  LedgerRig rig;
  struct Row {
    LedgerPool pool;
    Reason reason;
  };
  for (const Row& row :
       {Row{{.pool = kPool, .page_bytes = kPage, .capacity_bytes = kPage}, Reason::kIdInUse},
        Row{{.pool = {}, .page_bytes = kPage, .capacity_bytes = kPage}, Reason::kInvalidArgument},
        Row{{.pool = kOtherPool, .page_bytes = 0, .capacity_bytes = kPage},
            Reason::kInvalidArgument},
        Row{{.pool = kOtherPool, .page_bytes = kPage, .capacity_bytes = 0},
            Reason::kInvalidArgument},
        Row{{.pool = kOtherPool, .page_bytes = kPage, .capacity_bytes = kPage + 1},
            Reason::kInvalidArgument},
        Row{{.pool = kOtherPool,
        .page_bytes = kPage,
        .capacity_bytes = kPage,
        .budget_bytes = kPage + 1},
            Reason::kInvalidArgument}}) {
    const auto added = rig.ledger.add_pool(row.pool);
    REQUIRE_FALSE(added);
    CHECK(added.error().reason == row.reason);
  }
  CHECK(rig.ledger.pools() == std::vector<PoolId>{kPool});
}

TEST_CASE("a pool keeps its contents under a new id, and goes only when it is empty",
          "[pool][ledger]") {
  LedgerRig rig;
  rig.store(1);
  CHECK(rig.ledger.rename_pool(kOtherPool, PoolId(9)).error().reason == Reason::kUnknownPool);
  REQUIRE(rig.ledger.rename_pool(kPool, kOtherPool));
  CHECK_FALSE(rig.ledger.usage(kPool));
  CHECK(rig.ledger.usage(kOtherPool)->sealed_bytes == kPage);
  CHECK(rig.span_of(1).pool == kOtherPool);

  CHECK(rig.ledger.remove_pool(kOtherPool).error().reason == Reason::kStillMapped);
  rig.reclaim(1);
  REQUIRE(rig.ledger.remove_pool(kOtherPool));
  CHECK(rig.ledger.entry_count() == 0);
  CHECK(rig.ledger.remove_pool(kOtherPool).error().reason == Reason::kUnknownPool);
  REQUIRE(rig.ledger.add_pool({.pool = kPool, .page_bytes = kPage, .capacity_bytes = kPage}));
  CHECK(rig.allocate(2) == AllocateCode::kAllocated);
}

}  // namespace
}  // namespace berth::pool
