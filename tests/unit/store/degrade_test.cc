// The sequencer over a real RocksDB whose disk fills up: nothing acknowledged is lost, memory never
// runs ahead, and it goes on by itself when space returns.

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/clock.h"
#include "server/directory/invariants.h"
#include "server/sequencer/sequencer.h"
#include "server/store/rocksdb_store.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/fault_file_system.h"

namespace berth {
namespace {

using testing::FaultFileSystem;

class Server {
 public:
  explicit Server(Durability durability) : durability_(durability) { start(); }

  FaultFileSystem& disk() { return *disk_; }
  Sequencer& sequencer() { return *sequencer_; }

  void start() {
    sequencer_.reset();
    SequencerConfig config;
    config.durability = durability_;
    config.directory.namespaces_max = 1'000'000;
    config.tick_interval = milliseconds(1);
    config.flush_interval = milliseconds(1);
    config.reopen_interval = milliseconds(1);
    auto store = RocksDbStore::open({.directory = directory_.path(),
                                     .durability = durability_,
                                     .memtable_bytes = 64 << 10,
                                     .file_system = disk_});
    REQUIRE(store);
    sequencer_ = std::make_unique<Sequencer>(config, *std::move(store), clock_);
    REQUIRE(sequencer_->start({1, 1}, nullptr, {}));
  }

  // Opens namespaces until one is refused. Long texts, so that memtables fill.
  Error open_until_refused() {
    for (;;) {
      OpenNamespace open;
      open.spec.name = "n" + std::to_string(acknowledged_);
      open.spec.model = std::string(500, 'm');
      open.spec.digest_bytes = 16;
      open.fingerprint = {acknowledged_ + 1, 1};
      const auto answered = std::make_shared<std::promise<Result<Outcome>>>();
      sequencer_->submit(
          open, [answered](const Result<Outcome>& outcome) { answered->set_value(outcome); });
      const Result<Outcome> outcome = answered->get_future().get();
      if (!outcome) return outcome.error();
      ++acknowledged_;
    }
  }
  void open_more(uint64_t count) {
    const uint64_t before = acknowledged_;
    std::thread stopper([&] {
      while (acknowledged_ < before + count) std::this_thread::yield();
      disk_->fill(FaultFileSystem::Files::kAll);
    });
    open_until_refused();
    stopper.join();
  }
  void until_recovered() {
    while (sequencer_->is_degraded()) std::this_thread::yield();
  }

  uint64_t acknowledged() const { return acknowledged_; }
  // All of the acknowledged ones are there, and at most one more, whose answer was lost.
  void check_contents() {
    const DirectoryView view = sequencer_->view();
    CHECK(check_invariants(*view) == "");
    CHECK(view->namespaces().size() >= acknowledged_);
    CHECK(view->namespaces().size() <= acknowledged_ + 1);
    for (uint64_t i = 0; i < acknowledged_; ++i)
      if (!view->namespace_by_name("n" + std::to_string(i)))
        FAIL("lost n" << i << " of " << acknowledged_);
  }

 private:
  const Durability durability_;
  testing::TemporaryDirectory directory_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  SteadyClock clock_;
  std::unique_ptr<Sequencer> sequencer_;
  std::atomic<uint64_t> acknowledged_ = 0;
};

TEST_CASE("a disk that fills up during load, and again, costs nothing that was acknowledged",
          "[store][degrade]") {
  const auto durability = GENERATE(Durability::kInterval, Durability::kSync);
  Server server(durability);
  for (Epoch round = 1; round <= 3; ++round) {
    server.open_more(50);
    CHECK(server.sequencer().is_degraded());
    CHECK_THAT(server.sequencer().degraded_reason(), Catch::Contains("space"));
    server.check_contents();  // reads go on
    server.disk().mend();
    server.until_recovered();
    server.check_contents();
    CHECK(server.sequencer().view()->meta().epoch > round);
  }
  server.start();
  server.check_contents();
}

TEST_CASE("a disk that is full before the first command recovers too", "[store][degrade]") {
  Server server(Durability::kInterval);
  server.disk().fill(FaultFileSystem::Files::kLogs);
  CHECK(server.open_until_refused().reason == Reason::kStoreDegraded);
  CHECK(server.acknowledged() == 0);
  server.disk().mend();
  server.until_recovered();
  server.open_more(5);
  server.check_contents();
}

TEST_CASE("a disk without room for another table degrades the store, and recovers",
          "[store][degrade]") {
  Server server(Durability::kInterval);
  server.disk().fill(FaultFileSystem::Files::kTables);
  CHECK(server.open_until_refused().reason == Reason::kStoreDegraded);
  server.disk().mend();
  server.until_recovered();
  server.check_contents();
}

TEST_CASE("a disk that cannot fsync degrades the store, and recovers", "[store][degrade]") {
  Server server(Durability::kInterval);
  server.disk().fail_syncs(FaultFileSystem::Files::kLogs);
  CHECK(server.open_until_refused().reason == Reason::kStoreDegraded);
  server.disk().mend();
  server.until_recovered();
  server.check_contents();
}

}  // namespace
}  // namespace berth
