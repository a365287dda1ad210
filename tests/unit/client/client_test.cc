// The client library against a fake worker behind real sockets: lost answers, cancels and revokes
// that overtake the reply they concern, outages, and requests that make no sense.
#include "worker/client/client.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <thread>

#include "tests/unit/client/client_rig.h"

namespace berth::client {
namespace {

using testing::Engine;
using testing::kOneSize;
using testing::kPageBytes;
using testing::Script;
using testing::Seen;

v1::JoinResponse make_cancel(uint64_t operation) {
  v1::JoinResponse message;
  message.mutable_cancel()->set_operation(operation);
  return message;
}

std::vector<StoreCode> codes_of(const PendingStore& store) {
  std::vector<StoreCode> codes;
  for (const StoreItem& item : store.items()) codes.push_back(item.code);
  return codes;
}

// ---- The ordinary way -------------------------------------------------------------------------

TEST_CASE("what an engine writes into granted spans is in the pool, and load names it",
          "[client]") {
  Engine engine;
  auto store = engine.begin(2);
  REQUIRE(store);
  REQUIRE(store->granted_count() == 2);
  for (const StoreItem& item : store->items())
    std::memset(item.bytes.data(), 'k', item.bytes.size());
  const auto codes = engine.client->finish_store(*store);
  REQUIRE(codes);
  CHECK(*codes == std::vector<CommitCode>(2, CommitCode::kCommitted));
  CHECK(engine.worker->pool_bytes(kPageBytes, 4) == "kkkk");

  engine.worker->set_chunks_present(2);
  const auto probe = engine.probe(3);
  REQUIRE(probe);
  CHECK(probe->usable_chunks == 2);
  CHECK(probe->miss_reason == MissReason::kNotPresent);
  const auto load = engine.load(3);
  REQUIRE(load);
  REQUIRE(load->chunks() == 2);
  CHECK(load->chunk_class(1) == ChunkClass::kL1Local);
  CHECK(load->bytes(1).size() == kPageBytes);
  CHECK(load->bytes(1)[kPageBytes - 1] == std::byte{'k'});
  CHECK(load->valid());
}

TEST_CASE("a destroyed handle is released and a destroyed store is aborted", "[client]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  { auto load = engine.load(1); }
  engine.worker->await([&](const Seen& seen) { return seen.released.size() == 1; });
  { auto store = engine.begin(3); }
  engine.worker->await([&](const Seen& seen) { return seen.aborted.size() == 3; });
}

TEST_CASE("a store can be finished item by item and each item once", "[client]") {
  Engine engine;
  auto store = engine.begin(3);
  const uint32_t second[] = {1};
  REQUIRE(engine.client->finish_store(*store, second));
  const auto again = engine.client->finish_store(*store, second);
  REQUIRE_FALSE(again);
  CHECK(again.error().reason == Reason::kInvalidArgument);
  const auto rest = engine.client->finish_store(*store);
  REQUIRE(rest);
  CHECK(rest->size() == 2);
}

TEST_CASE("handles are released together in one call", "[client]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  std::vector<LoadHandle> handles;
  for (int i = 0; i < 3; ++i) handles.push_back(std::move(*engine.load(1)));
  engine.client->release(handles);
  CHECK(engine.worker->seen().released.size() == 3);
  const std::vector<std::string> calls = engine.worker->seen().calls;
  CHECK(std::count(calls.begin(), calls.end(), "Release") == 1);
  CHECK(handles[0].chunks() == 0);
}

TEST_CASE("a handle whose renewal is refused is not valid any more", "[client][lease]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  auto kept = engine.load(1);
  auto ended = engine.load(1);
  engine.worker->script(
      [](Script& script) { script.ended = {502}; });  // the worker ended the second one
  const LoadHandle* both[] = {&*kept, &*ended};
  const auto renewed = engine.client->renew(both);
  REQUIRE(renewed);
  CHECK(*renewed == std::vector<bool>{true, false});
  CHECK(kept->valid());
  CHECK_FALSE(ended->valid());
}

// ---- Cancel and revoke ------------------------------------------------------------------------

TEST_CASE("a cancel that overtakes the answer of its store keeps it from being handed out",
          "[client][cancel]") {
  Engine engine;
  engine.worker->hold("BeginStore");
  std::thread canceller([&] {
    engine.worker->await([&](const Seen& seen) { return seen.begun.size() == 1; });
    engine.worker->push(make_cancel(1));
    engine.worker->await(
        [&](const Seen& seen) { return seen.poisoned == std::vector<uint64_t>{1}; });
    engine.worker->let_go();
  });
  const auto store = engine.begin(2);
  canceller.join();
  REQUIRE(store);
  CHECK(codes_of(*store) == std::vector<StoreCode>(2, StoreCode::kSkippedCancelled));
  CHECK(store->items()[0].bytes.empty());
  engine.worker->await([&](const Seen& seen) { return seen.aborted.size() == 2; });
  CHECK(engine.client->stats().cancels == 1);
}

TEST_CASE("a cancelled open store answers closed when it is finished, and is aborted",
          "[client][cancel]") {
  Engine engine;
  auto store = engine.begin(2);
  engine.worker->push(make_cancel(1));
  engine.worker->await([&](const Seen& seen) { return seen.poisoned.size() == 1; });
  CHECK_FALSE(store->valid());
  const auto codes = engine.client->finish_store(*store);
  REQUIRE(codes);
  CHECK(*codes == std::vector<CommitCode>(2, CommitCode::kClosed));
  CHECK(engine.worker->seen().finished.empty());
  engine.worker->await([&](const Seen& seen) { return seen.aborted.size() == 2; });
}

TEST_CASE("a revoked handle is not valid at the end of the read", "[client][lease]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  const auto load = engine.load(1);
  CHECK(load->valid());
  v1::JoinResponse revoke;
  revoke.mutable_revoke()->set_operation(1);
  revoke.mutable_revoke()->set_handle(501);
  engine.worker->push(revoke);
  engine.worker->await([&](const Seen& seen) { return seen.poisoned.size() == 1; });
  CHECK_FALSE(load->valid());
  CHECK(load->bytes(0).size() == kPageBytes);  // still mapped: a reader in flight does not fault
}

TEST_CASE("a revoke of a handle that nobody has gives it back", "[client][lease]") {
  Engine engine;
  v1::JoinResponse revoke;
  revoke.mutable_revoke()->set_operation(1);
  revoke.mutable_revoke()->set_handle(501);
  engine.worker->push(revoke);
  engine.worker->await(
      [&](const Seen& seen) { return seen.released == std::vector<uint64_t>{501}; });
}

TEST_CASE("a revoke that overtakes its load turns it into a miss and gives the handle back",
          "[client][lease]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  engine.worker->hold("Load");
  std::thread revoker([&] {
    engine.worker->await([&](const Seen& seen) { return seen.loaded.size() == 1; });
    v1::JoinResponse revoke;
    revoke.mutable_revoke()->set_operation(1);
    revoke.mutable_revoke()->set_handle(501);
    engine.worker->push(revoke);
    engine.worker->await([&](const Seen& seen) { return seen.poisoned.size() == 1; });
    engine.worker->let_go();
  });
  const auto load = engine.load(1);
  revoker.join();
  REQUIRE(load);
  CHECK(load->chunks() == 0);
  engine.worker->await(
      [&](const Seen& seen) { return seen.released == std::vector<uint64_t>{501}; });
}

// ---- Answers that come late or never ----------------------------------------------------------

TEST_CASE("a store whose answer is late is skipped, repeated under its number and aborted",
          "[client][deadline]") {
  Engine engine([](ClientOptions& options) { options.store_deadline = milliseconds(20); });
  engine.worker->hold("BeginStore");
  const auto store = engine.begin(2);
  REQUIRE(store);
  CHECK(codes_of(*store) == std::vector<StoreCode>(2, StoreCode::kSkippedUnavailable));
  engine.worker->let_go();
  engine.worker->await([&](const Seen& seen) { return seen.aborted.size() == 2; });
  CHECK(engine.worker->seen().begun.size() >= 2);
  const std::vector<uint64_t> begun = engine.worker->seen().begun;
  for (const uint64_t number : begun) CHECK(number == 1);
  engine.await_stats([](const ClientStats& stats) { return stats.operations_unsettled == 0; });
  REQUIRE(engine.probe(1));
  CHECK(engine.worker->seen().low_water == 1);
}

TEST_CASE("a load whose answer is late is a miss, and its handle is given back",
          "[client][deadline]") {
  Engine engine([](ClientOptions& options) { options.load_deadline = milliseconds(20); });
  engine.worker->set_chunks_present(1);
  engine.worker->hold("Load");
  const auto load = engine.load(1);
  REQUIRE(load);
  CHECK(load->chunks() == 0);
  CHECK(load->miss_reason() == MissReason::kUnavailable);
  engine.worker->let_go();
  engine.worker->await(
      [&](const Seen& seen) { return seen.released == std::vector<uint64_t>{501}; });
}

TEST_CASE("a finish is repeated under one number while its outcome is unknown",
          "[client][deadline]") {
  Engine engine;
  auto store = engine.begin(1);
  engine.worker->refuse_next("FinishStore", Reason::kUnavailable, 2);
  const auto codes = engine.client->finish_store(*store);
  REQUIRE(codes);
  CHECK(*codes == std::vector<CommitCode>{CommitCode::kCommitted});
  CHECK(engine.worker->seen().finished == std::vector<uint64_t>{2, 2, 2});
  CHECK(engine.worker->seen().aborted.empty());
}

TEST_CASE("a finish past its deadline goes on in the background until it is decided",
          "[client][deadline]") {
  Engine engine([](ClientOptions& options) { options.finish_deadline = milliseconds(20); });
  auto store = engine.begin(1);
  engine.worker->hold("FinishStore");
  engine.worker->script([](Script& script) {
    script.finish_codes = std::string(1, static_cast<char>(v1::COMMIT_CODE_CLOSED));
  });
  const auto codes = engine.client->finish_store(*store);
  REQUIRE(codes);
  CHECK(*codes == std::vector<CommitCode>{CommitCode::kUnavailable});
  engine.worker->let_go();
  engine.worker->await(
      [&](const Seen& seen) { return seen.aborted == std::vector<uint64_t>{101}; });
}

TEST_CASE("items that the server closed are aborted, the others stay", "[client]") {
  Engine engine;
  auto store = engine.begin(2);
  engine.worker->script([](Script& script) {
    script.finish_codes = {static_cast<char>(v1::COMMIT_CODE_COMMITTED),
                           static_cast<char>(v1::COMMIT_CODE_CLOSED)};
  });
  const auto codes = engine.client->finish_store(*store);
  REQUIRE(codes);
  CHECK(*codes == std::vector<CommitCode>{CommitCode::kCommitted, CommitCode::kClosed});
  engine.worker->await(
      [&](const Seen& seen) { return seen.aborted == std::vector<uint64_t>{102}; });
}

TEST_CASE("a worker that does not answer opens the breaker, and an answer closes it",
          "[client][breaker]") {
  Engine engine([](ClientOptions& options) {
    options.probe_deadline = milliseconds(5);
    options.breaker.failures_max = 3;
    options.breaker.open_for_min = options.breaker.open_for_max = milliseconds(20);
  });
  engine.worker->hold("Probe");
  while (!engine.client->stats().breaker_open) {
    const auto probe = engine.probe(1);
    REQUIRE(probe);
    CHECK(probe->miss_reason == MissReason::kUnavailable);
  }
  const uint64_t asked = engine.client->stats().calls;
  const auto store = engine.begin(2);
  REQUIRE(store);
  CHECK(codes_of(*store)[1] == StoreCode::kSkippedUnavailable);
  CHECK(engine.client->stats().calls <= asked + 1);  // at most the trial
  engine.worker->let_go();
  while (engine.probe(1)->miss_reason == MissReason::kUnavailable) std::this_thread::yield();
  CHECK_FALSE(engine.client->stats().breaker_open);
}

TEST_CASE("a worker without its server is a miss and not an error", "[client]") {
  Engine engine;
  engine.worker->refuse_next("Probe", Reason::kUnavailable);
  CHECK(engine.probe(1)->miss_reason == MissReason::kUnavailable);
  engine.worker->refuse_next("Load", Reason::kReattaching);
  CHECK(engine.load(1)->miss_reason() == MissReason::kUnavailable);
  CHECK(engine.client->stats().misses_unavailable == 2);
}

TEST_CASE("a refusal that a retry cannot help is the caller's error", "[client]") {
  Engine engine;
  engine.worker->refuse_next("Probe", Reason::kUnknownNamespace);
  CHECK(engine.probe(1).error().reason == Reason::kUnknownNamespace);
  engine.worker->refuse_next("BeginStore", Reason::kUnknownNamespace);
  CHECK(engine.begin(1).error().reason == Reason::kUnknownNamespace);
  CHECK(engine.client->stats().operations_unsettled == 0);
}

TEST_CASE("a busy worker is asked again within the deadline", "[client]") {
  Engine engine;
  engine.worker->refuse_next("BeginStore", Reason::kOperationWindowFull, 3);
  CHECK(engine.begin(1)->granted_count() == 1);
  CHECK(engine.worker->seen().begun == std::vector<uint64_t>{1, 1, 1, 1});
}

TEST_CASE("a span outside of the mapping is never handed out", "[client][mapping]") {
  Engine engine;
  engine.worker->script(
      [](Script& script) { script.offset_of_next = testing::kPoolBytes - kPageBytes; });
  const auto store = engine.begin(2);
  REQUIRE(store);
  CHECK(codes_of(*store) ==
        std::vector<StoreCode>{StoreCode::kGranted, StoreCode::kSkippedUnavailable});
  CHECK(engine.client->stats().spans_refused == 1);
  engine.worker->await(
      [&](const Seen& seen) { return seen.aborted == std::vector<uint64_t>{102}; });

  engine.worker->set_chunks_present(2);
  engine.worker->script(
      [](Script& script) { script.first_load_offset = testing::kPoolBytes - kPageBytes; });
  const auto load = engine.load(2);
  REQUIRE(load);
  CHECK(load->chunks() == 1);
  CHECK(load->bytes(0).size() == kPageBytes);
}

TEST_CASE("a place in a pool that is not mapped is a miss, and its handle is given back",
          "[client][mapping][sharing]") {
  Engine engine;
  engine.worker->set_chunks_present(2);
  engine.worker->script([](Script& script) { script.pool_of_loads = 99; });
  const auto load = engine.load(2);
  REQUIRE(load);
  CHECK(load->chunks() == 0);
  CHECK(load->miss_reason() == MissReason::kNotAccessible);
  CHECK(engine.client->stats().spans_refused == 0);
  engine.worker->await([&](const Seen& seen) { return seen.released.size() == 1; });
}

// ---- Requests that make no sense --------------------------------------------------------------

TEST_CASE("a request with columns that do not fit is refused without a call", "[client]") {
  Engine engine;
  const size_t calls = engine.worker->seen().calls.size();
  const std::vector<std::byte> digests = engine.chain(3);
  const uint64_t two_sizes[] = {4096, 4096};
  const uint64_t no_size[] = {0};
  const auto refused = [&](const StoreRequest& request) {
    const auto store = engine.client->begin_store(request);
    return !store && store.error().reason == Reason::kInvalidArgument;
  };
  const Namespace& kv = engine.name_space;
  const std::span<const std::byte> all = digests;
  CHECK(refused({.name_space = kv, .digests = all.first(15), .sizes = kOneSize}));
  CHECK(refused({.name_space = kv, .digests = all.first(33), .sizes = kOneSize}));
  CHECK(refused({.name_space = kv, .digests = {}, .sizes = kOneSize}));
  CHECK(refused({.name_space = kv, .digests = all, .sizes = two_sizes}));
  CHECK(refused({.name_space = kv, .digests = all, .sizes = no_size}));
  CHECK(refused({.name_space = kv, .digests = all, .sizes = {}}));
  CHECK(engine.begin(33).error().message.find("1 to 32") != std::string::npos);
  CHECK(engine.probe(33).error().reason == Reason::kInvalidArgument);
  CHECK(engine.client->probe({.digests = all}).error().reason == Reason::kUnknownNamespace);
  CHECK(engine.worker->seen().calls.size() == calls);
}

TEST_CASE("a client with as many handles out as it may have misses further loads", "[client]") {
  Engine engine([](ClientOptions& options) { options.loads_max = 2; });
  engine.worker->set_chunks_present(1);
  const auto first = engine.load(1);
  auto second = engine.load(1);
  CHECK(engine.load(1)->miss_reason() == MissReason::kUnavailable);
  engine.client->release(*second);
  CHECK(engine.load(1)->chunks() == 1);
}

}  // namespace
}  // namespace berth::client
