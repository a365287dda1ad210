// A client that joins again, leaves, or cannot join: against a fake worker behind real sockets.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <thread>

#include "tests/unit/client/client_rig.h"
#include "worker/client/client.h"

namespace berth::client {
namespace {

using berth::testing::TemporaryDirectory;
using testing::Engine;
using testing::FakeWorker;
using testing::kPageBytes;
using testing::patient_options;
using testing::Seen;

// ---- Joining again ----------------------------------------------------------------------------

TEST_CASE("a handle on a replaced worker is invalid and still reads its own old memory",
          "[client][rejoin]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  engine.worker->write_pool(0, "old worker");
  auto load = engine.load(1);
  REQUIRE(load->chunks() == 1);
  engine.replace_worker();
  engine.worker->write_pool(0, "NEW WORKER");
  CHECK_FALSE(load->valid());
  CHECK(std::memcmp(load->bytes(0).data(), "old worker", 10) == 0);

  engine.worker->set_chunks_present(1);
  const auto fresh = engine.load(1);
  REQUIRE(fresh->chunks() == 1);
  CHECK(fresh->valid());
  CHECK(std::memcmp(fresh->bytes(0).data(), "NEW WORKER", 10) == 0);
}

TEST_CASE("a store on a replaced worker is finished with a rejoin error and aborted there",
          "[client][rejoin]") {
  Engine engine;
  auto store = engine.begin(1);
  engine.replace_worker();
  CHECK_FALSE(store->valid());
  std::memset(store->items()[0].bytes.data(), 'x', kPageBytes);  // still mapped
  const auto codes = engine.client->finish_store(*store);
  REQUIRE_FALSE(codes);
  CHECK(codes.error().reason == Reason::kRejoin);
  CHECK(engine.worker->pool_bytes(0, 1) == std::string(1, '\0'));
  engine.worker->await(
      [&](const Seen& seen) { return seen.aborted == std::vector<uint64_t>{101}; });
}

TEST_CASE("a client resumes its session and goes on with higher operation numbers",
          "[client][rejoin]") {
  Engine engine;
  REQUIRE(engine.begin(1));
  engine.replace_worker();
  REQUIRE(engine.worker->seen().hellos.size() == 1);
  CHECK(engine.worker->seen().hellos[0].resume_session() == 1001);
  CHECK(engine.worker->seen().hellos[0].resume_token() == std::string(16, 's'));
  REQUIRE(engine.begin(1));
  CHECK(engine.worker->seen().begun == std::vector<uint64_t>{2});
}

TEST_CASE("a session that the server does not know any more is replaced by a new one",
          "[client][rejoin]") {
  Engine engine;
  engine.worker->refuse_next("Join", Reason::kUnknownSession);
  engine.worker->end_join();
  engine.worker->await([&](const Seen& seen) { return seen.hellos.size() == 3; });
  CHECK(engine.worker->seen().hellos[1].resume_session() == 1001);
  CHECK(engine.worker->seen().hellos[2].resume_session() == 0);
  REQUIRE(engine.client->wait_joined(seconds(60)));
  CHECK(engine.begin(1)->granted_count() == 1);
}

TEST_CASE("a fenced client does not resume", "[client][rejoin]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  const auto load = engine.load(1);
  v1::JoinResponse rejoin;
  rejoin.mutable_rejoin()->set_reason("fenced by an operator");
  engine.worker->push(rejoin);
  engine.worker->await([&](const Seen& seen) { return seen.hellos.size() == 2; });
  CHECK(engine.worker->seen().hellos[1].resume_session() == 0);
  CHECK_FALSE(load->valid());
}

TEST_CASE("a call that is told to rejoin makes the client join again", "[client][rejoin]") {
  Engine engine;
  engine.worker->refuse_next("Probe", Reason::kRejoin);
  CHECK(engine.probe(1)->miss_reason == MissReason::kUnavailable);
  engine.await_stats([](const ClientStats& stats) { return stats.joins == 2 && stats.joined; });
  CHECK(engine.probe(1)->miss_reason == MissReason::kNotPresent);
}

TEST_CASE("the life lock of an old join is held until the last handle of it is gone",
          "[client][rejoin]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  auto load = std::make_unique<LoadHandle>(std::move(*engine.load(1)));
  engine.worker->end_join();
  engine.await_stats([](const ClientStats& stats) { return stats.joins == 2; });
  CHECK_FALSE(engine.worker->is_life_free(0));
  load.reset();
  while (!engine.worker->is_life_free(0))
    std::this_thread::yield();  // the join thread lets go last
  CHECK_FALSE(engine.worker->is_life_free(1));
}

TEST_CASE("between two joins a client keeps its life lock, so that nobody takes it for dead",
          "[client][rejoin]") {
  Engine engine;
  engine.worker->refuse_next("Join", Reason::kUnavailable, 3);
  engine.worker->end_join();
  engine.worker->await([&](const Seen& seen) { return seen.hellos.size() == 3; });
  CHECK_FALSE(engine.worker->is_life_free(0));
  engine.await_stats([](const ClientStats& stats) { return stats.joins == 2; });
  while (!engine.worker->is_life_free(0)) std::this_thread::yield();
}

TEST_CASE("an operation in doubt when the worker is replaced is settled with the new one",
          "[client][rejoin]") {
  Engine engine([](ClientOptions& options) { options.store_deadline = milliseconds(20); });
  engine.worker->hold("BeginStore");
  REQUIRE(engine.begin(2));
  engine.replace_worker();
  engine.worker->await([&](const Seen& seen) { return seen.aborted.size() == 2; });
  CHECK(engine.worker->seen().begun == std::vector<uint64_t>{1});
}

// ---- Coming and going -------------------------------------------------------------------------

TEST_CASE("a client leaves only when nothing is out, and has unmapped before it says so",
          "[client]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  auto load = engine.load(1);
  const auto refused = engine.client->leave();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kStillMapped);
  CHECK(load->valid());
  engine.client->release(*load);
  REQUIRE(engine.client->leave());
  CHECK(engine.worker->seen().calls.back() == "Leave");
  CHECK(engine.worker->seen().life_was_free_at_leave);
  CHECK(engine.probe(1)->miss_reason == MissReason::kUnavailable);
}

TEST_CASE("a handle outlives its client without harm", "[client]") {
  Engine engine;
  engine.worker->set_chunks_present(1);
  engine.worker->write_pool(0, "bytes");
  auto load = engine.load(1);
  engine.client.reset();
  CHECK_FALSE(load->valid());
  CHECK(std::memcmp(load->bytes(0).data(), "bytes", 5) == 0);
}

TEST_CASE("joining where no worker listens ends in an error that names the socket", "[client]") {
  ClientOptions options = patient_options("/tmp/berth-no-such-worker.sock");
  options.join_deadline = milliseconds(50);
  const auto joined = Client::join(options);
  REQUIRE_FALSE(joined);
  CHECK(joined.error().reason == Reason::kUnavailable);
  CHECK(joined.error().message.find("/tmp/berth-no-such-worker.sock") != std::string::npos);
}

TEST_CASE("a join that the worker refuses for good fails at once", "[client]") {
  TemporaryDirectory directory;
  FakeWorker worker(directory.path() + "/w.sock");
  worker.refuse_next("Join", Reason::kUnsupportedVersion);
  const auto joined = Client::join(patient_options(directory.path() + "/w.sock"));
  REQUIRE_FALSE(joined);
  CHECK(joined.error().reason == Reason::kUnsupportedVersion);
}

}  // namespace
}  // namespace berth::client
