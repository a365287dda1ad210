// What callers see while the store cannot be written, and when it is back.
#include <atomic>
#include <catch2/catch.hpp>

#include "tests/unit/rpc/server_rig.h"

namespace berth::testing {
namespace {

using Directory = v1::Directory::Stub;

// RocksDB with a disk that is full while the test says so.
class FullDiskStore final : public Store {
 public:
  FullDiskStore(std::unique_ptr<Store> real, const std::atomic<bool>& is_full)
      : real_(std::move(real)), is_full_(is_full) {}

  Result<> commit(const std::vector<Mutation>& mutations, Time now, bool sync) override {
    if (is_full_) return refuse(Reason::kStoreDegraded, "no space left on device");
    return real_->commit(mutations, now, sync);
  }
  Result<> flush() override { return real_->flush(); }
  Result<Loaded> load(const Sink& sink, const std::function<void(uint64_t)>& progress) override {
    return real_->load(sink, progress);
  }
  Result<> reopen() override {
    if (is_full_) return refuse(Reason::kStoreDegraded, "still no space left on device");
    return real_->reopen();
  }

 private:
  std::unique_ptr<Store> real_;
  const std::atomic<bool>& is_full_;
};

// Callers may hear of it a moment before the health does.
v1::GetStatusResponse status_with(ServerRig& server, v1::Health wanted) {
  for (int tries = 0; tries < 10'000; ++tries) {
    const auto status = call(*server.admin, &v1::Admin::Stub::GetStatus, v1::GetStatusRequest());
    REQUIRE(status);
    if (status->health() == wanted) return *status;
  }
  FAIL("the health never became " << v1::Health_Name(wanted));
  return {};
}

}  // namespace

TEST_CASE("while the store cannot be written, mutations are refused, probes miss and views go on",
          "[rpc][degraded]") {
  std::atomic<bool> is_full{false};
  RigOptions options;
  options.sequencer.reopen_interval = milliseconds(10);
  options.wrap_store = [&](std::unique_ptr<Store> real) {
    return std::make_unique<FullDiskStore>(std::move(real), is_full);
  };
  ServerRig server(options);
  TestWorker worker(server);
  worker.set_up();
  const auto reserve = worker.reserve(1, 'k');

  is_full = true;
  // The first finds out, the second is told.
  for (int i = 0; i < 2; ++i) {
    const auto refused = call(*server.directory, &Directory::Reserve, from(worker, reserve));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().reason == Reason::kStoreDegraded);
  }
  const auto probed =
      call(*server.directory, &Directory::Probe, worker.probe(std::string(16, 'k')));
  REQUIRE(probed);
  CHECK(probed->usable_chunks() == 0);
  CHECK(probed->miss_reason() == v1::MISS_REASON_STORE_DEGRADED);
  const auto status = status_with(server, v1::HEALTH_DEGRADED);
  CHECK_THAT(status.health_reason(), Catch::Contains("no space left on device"));
  CHECK(status.reservations() == 0);
  CHECK(status.pools() == 1);

  is_full = false;
  // It comes back by itself under a new epoch, and every worker has to re-attach.
  CHECK(worker.link->ended().reason == Reason::kUnavailable);
  worker.attach();
  CHECK(call(*server.directory, &Directory::Reserve, from(worker, reserve)));
  const auto after = status_with(server, v1::HEALTH_SERVING);
  CHECK(after.store().epoch() > status.store().epoch());
}

}  // namespace berth::testing
