// Everything at once, at random: real processes in pools that are far too small, killed, stopped
// and cut off from each other while their disk fills up. No wrong byte is ever read; and when all
// of it is over, nothing is left behind.
//
// A seed decides which faults meet which processes and for how long; the processes' own timing is
// the machine's. Replay: BERTH_TORTURE_SEED=N berth-integration "<name of the test>".
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>

#include "common/random.h"
#include "tests/integration/chunk_content.h"
#include "tests/integration/cluster.h"
#include "tests/integration/relay.h"
#include "tests/integration/small_disk.h"

namespace berth::testing {
namespace {

constexpr uint64_t kDiskBytes = 48 * kMiB;
constexpr size_t kWorkers = 2;
constexpr size_t kEngines = 4;
constexpr uint64_t kPage = 4 * kKiB;
constexpr uint64_t kPoolPages = 256;  // the chains hold four times as much
constexpr const char* kChains = "32 24 4096";
// For what comes back by itself once the faults are over, on a machine that is busy.
constexpr Duration kHealWithin = seconds(90);

uint64_t number_from(const char* variable, uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

ServerTuning impatient_server(const std::string& state_directory) {
  ServerTuning tuning;
  tuning.state_directory = state_directory;
  tuning.heartbeat_deadline = seconds(2);
  tuning.write_within = seconds(2);
  tuning.lease_ttl = seconds(3);
  tuning.memtable_bytes = kMiB;  // so that a small disk holds the log
  tuning.reopen_every = milliseconds(200);
  return tuning;
}

class Chance {
 public:
  explicit Chance(uint64_t seed) : seed_(mix(seed)) {}
  uint64_t below(uint64_t n) { return mix(seed_ + ++drawn_) % n; }
  Duration between(int64_t low_millis, int64_t high_millis) {
    return {low_millis +
            static_cast<int64_t>(below(static_cast<uint64_t>(high_millis - low_millis)))};
  }

 private:
  const uint64_t seed_;
  uint64_t drawn_ = 0;
};

// One engine that works without pause, is replaced when it was killed, and whose every answer is
// looked at.
class Worked {
 public:
  Worked(Cluster& cluster, WorkerProcess& worker, std::string name)
      : cluster_(cluster), worker_(worker), name_(std::move(name)) {}

  void start() {
    engine_ = cluster_.engine(worker_, name_, Enter::kNot);
    step_ = Step::kJoin;
    give();
  }
  Process& process() { return engine_->process(); }
  void kill_hard() {
    engine_->process().kill_hard();
    start();
  }

  // Takes an answer, if there is one, and gives the next thing to do.
  void look(Chance& chance) {
    const auto reply = engine_->try_answer(milliseconds(1));
    if (!reply) {
      INFO(name_ << " ended by itself");
      REQUIRE_FALSE(engine_->process().has_ended());
      return;
    }
    take(*reply);
    if (step_ == Step::kChurn && is_leaving_) step_ = Step::kLeave;
    work_ = std::to_string(chance.below(1 << 30));
    if (step_ != Step::kGone) give();
  }
  void leave() { is_leaving_ = true; }
  bool is_gone() const { return step_ == Step::kGone; }
  uint64_t total(const std::string& count) const {
    const auto found = totals_.find(count);
    return found == totals_.end() ? 0 : found->second;
  }

 private:
  enum class Step { kJoin, kNamespace, kChurn, kLeave, kGone };

  void give() {
    static const std::map<Step, std::string> kCommands{{Step::kNamespace, "namespace kv"},
                                                       {Step::kLeave, "leave"}};
    if (step_ == Step::kJoin)
      engine_->begin("join " + worker_.socket() + " " + name_ + " 300");
    else if (step_ == Step::kChurn)
      engine_->begin("churn " + work_ + " " + kChains + " 700");
    else
      engine_->begin(kCommands.at(step_));
  }
  // An outage is no reason to go on to the next step; what may never happen is.
  void take(const Reply& reply) {
    INFO(name_ << ": " << reply.text);
    if (step_ == Step::kChurn) {
      REQUIRE(reply.ok());
      REQUIRE(reply.number("wrong") == 0);
      REQUIRE(reply.number("spans_refused") == 0);
      for (const auto& [count, text] : reply.values) totals_[count] += reply.number(count);
    } else if (reply.ok()) {
      step_ = static_cast<Step>(static_cast<int>(step_) + 1);
    }
  }

  Cluster& cluster_;
  WorkerProcess& worker_;
  const std::string name_;
  std::unique_ptr<Engine> engine_;
  Step step_ = Step::kJoin;
  std::string work_ = "0";
  bool is_leaving_ = false;
  std::map<std::string, uint64_t> totals_;
};

class Torture {
 public:
  explicit Torture(uint64_t seed)
      : chance_(seed),
        disk_(directory_.path() + "/state", kDiskBytes),
        cluster_(impatient_server(directory_.path() + "/state")),
        relay_(cluster_.directory() + "/berthd.sock") {
    if (!disk_.is_mounted()) WARN("may not mount a small file system: the disk never fills up");
    for (size_t i = 0; i < kWorkers; ++i)
      workers_.push_back(&cluster_.add_worker({.name = "w" + std::to_string(i),
                                               .pool_bytes = kPoolPages * kPage,
                                               .page_bytes = kPage,
                                               .server = relay_.address()}));
    for (size_t i = 0; i < kEngines; ++i) {
      engines_.push_back(std::make_unique<Worked>(cluster_, *workers_[i % kWorkers],
                                                  "engine-" + std::to_string(i)));
      engines_.back()->start();
    }
  }

  void rage(Duration length) {
    const int64_t until = clock_.monotonic_millis() + length.millis;
    while (clock_.monotonic_millis() < until) {
      end_faults(clock_.monotonic_millis());
      for (const auto& engine : engines_) engine->look(chance_);
      keep_server_running();
      for (WorkerProcess* worker : workers_) require_running(worker->process());
      operate();
      if (clock_.monotonic_millis() < next_fault_) continue;
      start_fault();
      next_fault_ = clock_.monotonic_millis() + chance_.between(200, 1400).millis;
    }
  }

  void heal() {
    end_faults(INT64_MAX);
    if (cluster_.server.process().has_ended()) cluster_.server.launch();
    Admin& admin = cluster_.server.admin();
    REQUIRE(eventually([&] { return admin.is_serving(); }, kHealWithin));
    undrain_all();
    for (WorkerProcess* worker : workers_)
      REQUIRE(eventually([&] { return worker->is_ready(); }, kHealWithin));
    for (const auto& engine : engines_) engine->leave();
    REQUIRE(eventually(
        [&] {
          for (const auto& engine : engines_)
            if (!engine->is_gone()) engine->look(chance_);
          return std::all_of(engines_.begin(), engines_.end(),
                             [](const auto& engine) { return engine->is_gone(); });
        },
        kHealWithin));
    check_nothing_is_left();
    check_everything_can_go();
  }

  void report(std::ostream& out) const {
    for (const auto& [fault, count] : faults_) out << "  " << count << " " << fault << "\n";
    for (const char* count :
         {"requests", "chunks", "committed", "skipped", "closed", "lost", "outages", "errors"})
      out << "  " << total(count) << " " << count << "\n";
  }
  uint64_t total(const std::string& count) const {
    return std::accumulate(
        engines_.begin(), engines_.end(), uint64_t{0},
        [&](uint64_t sum, const auto& engine) { return sum + engine->total(count); });
  }

 private:
  // What is going on now, by what it goes on with: one fault at a time for each.
  struct Fault {
    int64_t until = 0;
    std::function<void()> end;
  };

  bool begin(const std::string& name, const std::string& victim, Duration length,
             const std::function<void()>& start, std::function<void()> end) {
    if (active_.contains(victim)) return false;
    ++faults_[name];
    start();
    active_[victim] = {clock_.monotonic_millis() + length.millis, std::move(end)};
    return true;
  }
  void end_faults(int64_t now) {
    std::erase_if(active_, [&](const auto& fault) {
      if (fault.second.until > now) return false;
      fault.second.end();
      return true;
    });
  }

  void start_fault() {
    switch (chance_.below(11)) {
      case 0:
        return kill_server();
      case 1:
        return stop(cluster_.server.process(), "server", chance_.between(100, 1500));
      case 2:
        return kill_worker();
      case 3: {
        const size_t i = chance_.below(kWorkers);
        return stop(workers_[i]->process(), "worker " + std::to_string(i),
                    chance_.between(100, 3000));
      }
      case 4:
      case 5:
        return kill_engine();
      case 6: {
        const size_t i = chance_.below(kEngines);
        return stop(engines_[i]->process(), "engine " + std::to_string(i),
                    chance_.between(100, 6000));
      }
      case 7:
        return fill_disk();
      case 8:
        begin(
            "connections reset", "network", milliseconds(1), [&] { relay_.reset_all(); }, [] {});
        return;
      case 9:
        begin(
            "network refusing", "network", chance_.between(100, 1000),
            [&] {
              relay_.refuse_new(true);
              relay_.reset_all();
            },
            [&] { relay_.refuse_new(false); });
        return;
      default:
        return freeze_network();
    }
  }

  void kill_server() {
    begin(
        "server killed", "server", chance_.between(1, 800),
        [&] { cluster_.server.process().kill_hard(); }, [&] { cluster_.server.launch(); });
  }
  void kill_worker() {
    const size_t i = chance_.below(kWorkers);
    begin(
        "worker killed", "worker " + std::to_string(i), milliseconds(1),
        [&] {
          workers_[i]->process().kill_hard();
          workers_[i]->launch();
        },
        [] {});
  }
  void kill_engine() {
    const size_t i = chance_.below(kEngines);
    begin(
        "engine killed", "engine " + std::to_string(i), milliseconds(1),
        [&] { engines_[i]->kill_hard(); }, [] {});
  }
  void stop(Process& process, const std::string& victim, Duration length) {
    // A server that ended on a full disk is not there to be stopped.
    if (process.has_ended()) return;
    begin(
        victim.substr(0, victim.find(' ')) + " stopped", victim, length, [&] { process.stop(); },
        [&process] { process.go_on(); });
  }
  void fill_disk() {
    begin(
        "disk full", "disk", chance_.between(200, 1500), [&] { disk_.fill(); },
        [&] { disk_.make_room(); });
  }
  void freeze_network() {
    const auto way = static_cast<Relay::Way>(1 + chance_.below(3));
    begin(
        "network frozen", "network", chance_.between(100, 2500), [&] { relay_.freeze(way); },
        [&] { relay_.thaw(); });
  }
  // An operator at work, while the server can answer: what engines read is evicted under them,
  // which the policy never does, and pools go out of use and come back.
  void operate() {
    if (clock_.monotonic_millis() < next_deed_ || active_.contains("server")) return;
    next_deed_ = clock_.monotonic_millis() + chance_.between(100, 500).millis;
    Admin& admin = cluster_.server.admin();
    const uint64_t what = chance_.below(10);
    if (what < 7) {
      faults_["half of all evicted"] += admin.try_evict_one_of(2);
    } else if (what < 8) {
      faults_["namespace evicted"] += admin.try_evict_namespace("kv");
    } else if (const auto usage = admin.try_usage(); usage && usage->pools_size() > 0) {
      const uint64_t pool =
          usage->pools(static_cast<int>(chance_.below(static_cast<uint64_t>(usage->pools_size()))))
              .pool();
      if (what == 8)
        faults_["pool drained"] += admin.try_drain(pool);
      else
        faults_["pool back in use"] += admin.try_undrain(pool);
    }
  }
  // What an operator who was killed off in the middle left out of use, also where the worker has
  // not re-attached yet.
  void undrain_all() {
    Admin& admin = cluster_.server.admin();
    const v1::GetUsageResponse usage = admin.usage();
    for (const v1::PoolRow& pool : usage.pools())
      if (pool.draining())
        CHECK(eventually([&] { return admin.try_undrain(pool.pool()); }, kHealWithin));
  }

  // It may refuse to start while its disk is full, and is started again as a service manager would.
  // It may never crash.
  void keep_server_running() {
    if (active_.contains("server") && !cluster_.server.process().has_ended()) return;
    if (!cluster_.server.process().has_ended() || active_.contains("server")) return;
    const int code = cluster_.server.process().wait_for_end().value_or(-1);
    INFO("berthd ended by itself with " << code);
    REQUIRE(faults_["disk full"] > 0);
    REQUIRE(code > 0);
    REQUIRE(code < 128);
    ++faults_["server ended on a full disk"];
    begin(
        "server started again", "server", milliseconds(200), [] {},
        [&] { cluster_.server.launch(); });
  }
  static void require_running(Process& process) {
    INFO(process.log());
    REQUIRE_FALSE(process.has_ended());
  }

  static uint64_t unsettled_bytes(const v1::PoolUsage& usage) {
    return usage.reserved_bytes() + usage.retiring_bytes() + usage.quarantined_bytes();
  }

  void check_nothing_is_left() {
    Admin& admin = cluster_.server.admin();
    CHECK(eventually([&] { return admin.sessions().size() == kWorkers; }, kHealWithin));
    CHECK(eventually([&] { return admin.reservations().empty(); }, kHealWithin));
    CHECK(eventually([&] { return admin.leases().empty(); }, kHealWithin));
    for (WorkerProcess* worker : workers_) {
      CHECK(eventually([&] { return unsettled_bytes(cluster_.pool(*worker).usage()) == 0; },
                       kHealWithin));
      const v1::PoolUsage usage = cluster_.pool(*worker).usage();
      INFO(usage.ShortDebugString());
      CHECK(usage.allocated_bytes() == usage.ready_allocated_bytes());
      CHECK(usage.leased_replicas() == 0);
    }
    // Memory of dead workers is unmapped by everybody, and is not charged any more.
    const auto is_of_live_pools = [&] {
      const v1::GetUsageResponse usage = admin.usage();
      uint64_t live = 0;
      for (const v1::PoolRow& pool : usage.pools()) live += pool.usage().backing_bytes();
      return usage.pools_size() == static_cast<int>(kWorkers) && usage.nodes_size() == 1 &&
             usage.nodes(0).gone_bytes() == 0 && usage.nodes(0).backing_bytes() == live;
    };
    CHECK(eventually(is_of_live_pools, kHealWithin));
    INFO(admin.usage().ShortDebugString());
    CHECK(admin.check() == "");
  }

  void check_everything_can_go() {
    Admin& admin = cluster_.server.admin();
    for (WorkerProcess* worker : workers_) {
      CHECK(eventually(
          [&] {
            admin.try_evict_one_of(1);
            const v1::PoolRow pool = cluster_.pool(*worker);
            return pool.usage().allocated_bytes() == 0 && pool.spans_out() == 0 &&
                   pool.free_bytes() == pool.usage().capacity_bytes();
          },
          kHealWithin));
      INFO(cluster_.pool(*worker).ShortDebugString());
    }
    CHECK(admin.check() == "");
    // And it goes on: what a new engine stores is read back. Chains of their own, because the
    // workers share their pools.
    for (size_t i = 0; i < kWorkers; ++i) {
      auto engine = cluster_.engine(*workers_[i], "last-" + workers_[i]->tuning.name);
      const std::string chain = std::to_string(1000 + i);
      CHECK(engine->must("store " + chain + " 0 8 4096").number("committed") == 8);
      engine->must("load l " + chain + " 0 8");
      CHECK(engine->must("verify l").number("wrong") == 0);
    }
  }

  Chance chance_;
  const SteadyClock clock_;
  TemporaryDirectory directory_;
  SmallDisk disk_;
  Cluster cluster_;
  Relay relay_;
  std::vector<WorkerProcess*> workers_;
  std::vector<std::unique_ptr<Worked>> engines_;
  std::map<std::string, Fault> active_;
  std::map<std::string, uint64_t> faults_;
  int64_t next_fault_ = 0;
  int64_t next_deed_ = 0;
};

void torture(uint64_t seed, Duration length) {
  std::cout << "torture: BERTH_TORTURE_SEED=" << seed << ", " << length.millis / 1000 << " s"
            << std::endl;
  INFO("replay with BERTH_TORTURE_SEED=" << seed);
  Torture torture(seed);
  torture.rage(length);
  torture.report(std::cout);
  torture.heal();
  CHECK(torture.total("committed") > 0);
  CHECK(torture.total("chunks") > 0);
}

}  // namespace

TEST_CASE("half a minute of torture leaves no wrong byte and nothing behind", "[integration]") {
  torture(number_from("BERTH_TORTURE_SEED", 1), seconds(30));
}

TEST_CASE("minutes of torture leave no wrong byte and nothing behind", "[integration][.torture]") {
  torture(number_from("BERTH_TORTURE_SEED", random_seed() % 1'000'000),
          seconds(static_cast<int64_t>(number_from("BERTH_TORTURE_SECONDS", 300))));
}

}  // namespace berth::testing
