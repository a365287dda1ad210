// berth-bench-mass: what the mass events cost that touch a million objects at once, and what other
// calls feel of them.
//
// Workload: the core of berthd in this process (sequencer, directory, RocksDB in a fresh directory,
// interval durability). One worker session owns a pool with all the objects, one replica each; a
// second one with a pool of its own is the rest of the fleet. Then, each time from a full pool:
//
//   fence       an operator fences the session that owns them all
//   drain       its pool is taken out of use; the owner acknowledges every reclaim at once
//   namespace   everything of a namespace is evicted; the same owner
//   trim        the eviction policy empties the pool; the same owner
//
// Meanwhile two threads do what the fleet does all the time: one reserves and commits 8 objects,
// one probes chains of 16 chunks that are there. They pause
// between calls, so that what is measured is waiting and not two threads that share a core.
//
// Baseline in the same run: the same two threads over the same full directory, with no job.
//
// Reported, as the median of all runs: when the effect is seen by a probe; when the job has ended,
// and when the last page is free; the slices, the largest in microseconds (decide, commit, install)
// and in records; p50, p99 and the longest of the other calls.
//
// Resume, first of all, because it forks: a child starts the namespace eviction and is killed with
// SIGKILL in the middle. The store is opened again, and the job goes on from its cursor and ends.
//
//   berth-bench-mass [--objects N] [--runs N] [--slice-records N] [--event NAME] [--json]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/check.h"
#include "server/directory/invariants.h"
#include "server/directory/queries.h"
#include "server/sequencer/sequencer.h"
#include "server/store/rocksdb_store.h"
#include "tests/bench/core/core_rig.h"
#include "tests/bench/core/objects.h"

namespace berth::bench {
namespace {

using BenchClock = std::chrono::steady_clock;
double millis_since(BenchClock::time_point start) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - start).count();
}

constexpr uint64_t kItems = 8;            // of one call of the rest of the fleet
constexpr uint64_t kChain = 16;           // chunks of one probe
constexpr uint64_t kOtherObjects = 4096;  // of the rest of the fleet
constexpr auto kPause = std::chrono::microseconds(300);
constexpr auto kBaseline = std::chrono::seconds(2);

[[noreturn]] void fail_with(const std::string& what) { fail({Reason::kInternal, what}); }

double percentile(std::vector<double>& samples, double percent) {
  if (samples.empty()) return 0;
  const auto at =
      static_cast<std::ptrdiff_t>(std::min(static_cast<double>(samples.size() - 1),
                                           percent / 100 * static_cast<double>(samples.size())));
  std::nth_element(samples.begin(), samples.begin() + at, samples.end());
  return samples[static_cast<size_t>(at)];
}

// ---- One server
// -------------------------------------------------------------------------------------

// The owner's side of a reclaim: acknowledges what it is asked for, at once, like a worker with no
// span out.
class Owner final : public SequencerListener {
 public:
  void on_ask(const Ask& ask) override {
    if (ask.kind != Ask::Kind::kReclaim || !sequencer || ask.worker != caller.session) return;
    for (size_t at = 0; at < ask.replicas.size(); at += items_max) {
      ReclaimAck ack;
      ack.caller = caller;
      const size_t end = std::min(ask.replicas.size(), at + items_max);
      ack.replicas.assign(ask.replicas.begin() + static_cast<std::ptrdiff_t>(at),
                          ask.replicas.begin() + static_cast<std::ptrdiff_t>(end));
      sequencer->submit(std::move(ack), [](const Result<Outcome>&) {});
    }
  }
  void on_epoch_changed(Epoch) override {}
  void on_health_changed(bool degraded, const std::string& why) override {
    if (degraded) fail_with(why);
  }

  Sequencer* sequencer = nullptr;
  Caller caller;
  size_t items_max = 4096;
};

struct Options {
  uint64_t objects = 1'000'000;
  uint64_t runs = 5;
  uint32_t slice_records = 0;  // 0: the default
  std::string event;           // empty: all
  bool json = false;
};

class Server {
 public:
  Server(std::string directory, const Options& options)
      : options_(options), directory_(std::move(directory)) {
    SequencerConfig config;
    config.directory = core_config();
    if (options.slice_records > 0) config.directory.slice_records = options.slice_records;
    RocksDbStoreOptions store_options;
    store_options.directory = directory_;
    auto store = RocksDbStore::open(store_options);
    if (!store) fail(store.error());
    sequencer_ = std::make_unique<Sequencer>(config, std::move(*store), clock_);
    if (auto started = sequencer_->start({1, 1}, &owner_, {}); !started) fail(started.error());
    owner_.sequencer = sequencer_.get();
  }
  ~Server() { owner_.sequencer = nullptr; }

  Sequencer& sequencer() { return *sequencer_; }

  Result<Outcome> call(Command command) {
    std::promise<Result<Outcome>> answer;
    sequencer_->submit(std::move(command),
                       [&](const Result<Outcome>& outcome) { answer.set_value(outcome); });
    return answer.get_future().get();
  }
  Outcome must(Command command) {
    Result<Outcome> outcome = call(std::move(command));
    if (!outcome) fail(outcome.error());
    return *std::move(outcome);
  }

  CoreMember add_member(const std::string& name, uint64_t number, uint64_t capacity_objects) {
    return CoreMember([this](Command command) { return must(std::move(command)); },
                      {name, number, capacity_objects * kPageBytes});
  }

  // Usable chunks of a chain from `first` on.
  size_t probe(const CoreMember& member, uint64_t first, uint64_t count) {
    const std::vector<Digest> digests = member.chain(first, count);
    const auto view = sequencer_->view();
    const Namespace* ns = view->find<Namespace>(member.namespace_id());
    const auto readers = readers_for(*view, *ns, member.client(), {});
    return readers ? berth::probe(*view, *ns, digests, *readers).classes.size() : 0;
  }
  uint64_t replicas_in(PoolId pool) {
    const auto view = sequencer_->view();
    const PoolEntry* entry = view->find_pool(pool);
    return entry ? static_cast<uint64_t>(entry->usage.replicas()) : 0;
  }
  std::optional<Job> job() {
    const auto view = sequencer_->view();
    if (view->jobs().empty()) return std::nullopt;
    return view->jobs().begin()->second;
  }
  std::string broken() {
    const auto view = sequencer_->view();
    return check_invariants(*view);
  }
  void acknowledge_for(const CoreMember& member) { owner_.caller = member.worker(); }

 private:
  const Options& options_;
  const std::string directory_;
  const SteadyClock clock_;
  Owner owner_;
  std::unique_ptr<Sequencer> sequencer_;
};

// ---- The rest of the fleet
// ------------------------------------------------------------------------------------

struct Latencies {
  std::vector<double> store_millis;  // of one Reserve or one Commit
  std::vector<double> probe_millis;
};

class OtherCalls {
 public:
  OtherCalls(Server& server, CoreMember& member) : server_(server), member_(member) {
    storing_ = std::thread([this] { store_on(); });
    probing_ = std::thread([this] { probe_on(); });
  }
  Latencies stop() {
    stops_ = true;
    storing_.join();
    probing_.join();
    return std::move(latencies_);
  }

 private:
  template <class Call>
  static void timed(std::vector<double>& into, Call call) {
    const auto start = BenchClock::now();
    call();
    into.push_back(millis_since(start));
  }

  // Objects that are new each time; their pool is large enough.
  void store_on() {
    while (!stops_) {
      const Reserve reserve = member_.reserve(next_object(), kItems);
      next_object() += kItems;
      Reserved reserved;
      timed(latencies_.store_millis, [&] { reserved = member_.run<Reserved>(reserve); });
      const Commit commit = member_.commit(reserved);
      timed(latencies_.store_millis, [&] { member_.run<Committed>(commit); });
      member_.forget_answers();
      std::this_thread::sleep_for(kPause);
    }
  }
  void probe_on() {
    for (uint64_t at = 0; !stops_; at = (at + kChain) % (kOtherObjects - kChain)) {
      size_t usable = 0;
      timed(latencies_.probe_millis, [&] { usable = server_.probe(member_, at, kChain); });
      if (usable != kChain) fail_with("a probe of another session's objects missed");
      std::this_thread::sleep_for(kPause);
    }
  }
  // Goes on from one object of this class to the next.
  static uint64_t& next_object() {
    static uint64_t object = kOtherObjects;
    return object;
  }

  Server& server_;
  CoreMember& member_;
  std::atomic<bool> stops_ = false;
  Latencies latencies_;
  std::thread storing_;
  std::thread probing_;
};

// ---- One event
// ------------------------------------------------------------------------------------------

using Figures = std::map<std::string, double>;

void add_latencies(Figures& figures, const std::string& prefix, Latencies latencies) {
  const auto add = [&](const std::string& name, std::vector<double>& millis) {
    figures[prefix + name + "_p50_ms"] = percentile(millis, 50);
    figures[prefix + name + "_p99_ms"] = percentile(millis, 99);
    figures[prefix + name + "_max_ms"] = percentile(millis, 100);
    figures[prefix + name + "_calls"] = static_cast<double>(millis.size());
  };
  add("store", latencies.store_millis);
  add("probe", latencies.probe_millis);
}

Command event_command(const std::string& event, const CoreMember& member) {
  if (event == "fence") return FenceByOperator{member.worker().session, "", "bench", false};
  if (event == "drain") return Drain{member.pool(), {}};
  if (event == "namespace") return EvictNamespace{"mass"};
  return TrimPool{member.pool(), 0};
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "berth-bench-XXXXXX").string();
    BERTH_CHECK(mkdtemp(path_.data()) != nullptr, "a temporary directory can be made");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Figures run_event(const std::string& event, const Options& options) {
  const TemporaryFolder folder;
  Server server(folder.path(), options);
  CoreMember mass = server.add_member("mass", 1, options.objects * 2);
  CoreMember other = server.add_member("other", 2, 1'000'000'000);
  server.acknowledge_for(mass);
  other.fill(kOtherObjects);
  mass.fill(options.objects);

  Figures figures;
  {
    OtherCalls calls(server, other);
    std::this_thread::sleep_for(kBaseline);
    add_latencies(figures, "baseline_", calls.stop());
  }
  const SequencerStats before = server.sequencer().stats();
  OtherCalls calls(server, other);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto start = BenchClock::now();
  const Result<Outcome> begun = server.call(event_command(event, mass));
  if (!begun) fail(begun.error());
  figures["answered_ms"] = millis_since(start);
  // A trim hides each object as it goes; the others hide all of them at once.
  if (event != "trim") {
    for (const uint64_t at : {uint64_t{0}, options.objects / 2, options.objects - 1})
      while (server.probe(mass, at, 1) > 0) std::this_thread::yield();
    figures["visible_ms"] = millis_since(start);
  }
  while (server.job() && event != "drain")
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  while (event == "drain" && server.job())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  figures["job_ms"] = millis_since(start);
  while (server.replicas_in(mass.pool()) > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  figures["freed_ms"] = millis_since(start);
  add_latencies(figures, "", calls.stop());
  const SequencerStats after = server.sequencer().stats();
  figures["slices"] = static_cast<double>(after.slices - before.slices);
  figures["slice_us_max"] = static_cast<double>(after.slice_micros_max);
  figures["slice_records_max"] = static_cast<double>(after.slice_records_max);
  if (const std::string broken = server.broken(); !broken.empty()) fail_with(broken);
  return figures;
}

double median_of(const std::vector<Figures>& runs, const std::string& name) {
  std::vector<double> values;
  for (const Figures& run : runs)
    if (const auto found = run.find(name); found != run.end()) values.push_back(found->second);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// ---- Killed in the middle
// --------------------------------------------------------------------------------------

// Runs in a child: fills, starts the eviction and tells how far it is until it is killed.
[[noreturn]] void evict_until_killed(const std::string& directory, const Options& options,
                                     int told) {
  Server server(directory, options);
  CoreMember mass = server.add_member("mass", 1, options.objects * 2);
  mass.fill(options.objects);
  server.must(EvictNamespace{"mass"});
  for (;;) {
    const std::optional<Job> job = server.job();
    const uint64_t done = job ? job->done : options.objects;
    if (write(told, &done, sizeof done) != sizeof done) _exit(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Figures run_resume(const Options& options) {
  const TemporaryFolder folder;
  int ends[2];
  BERTH_CHECK(pipe(ends) == 0, "a pipe can be made");
  const pid_t child = fork();
  BERTH_CHECK(child >= 0, "a child can be forked");
  if (child == 0) {
    close(ends[0]);
    evict_until_killed(folder.path(), options, ends[1]);
  }
  close(ends[1]);
  uint64_t done = 0;
  while (done < options.objects / 3 && read(ends[0], &done, sizeof done) == sizeof done) {
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);

  Figures figures;
  figures["killed_at"] = static_cast<double>(done);
  const auto start = BenchClock::now();
  Server server(folder.path(), options);
  figures["restart_ms"] = millis_since(start);
  if (const std::optional<Job> job = server.job()) {
    figures["resumed_at"] = static_cast<double>(job->done);
    if (job->done < done) fail_with("the job lost what it had told");
  } else {
    fail_with("the job did not survive");
  }
  while (server.job()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  figures["job_ms"] = millis_since(start);
  figures["slices"] = static_cast<double>(server.sequencer().stats().slices);
  const auto view = server.sequencer().view();
  uint64_t retiring = 0;
  for (const auto& [id, entry] : view->pools())
    retiring += static_cast<uint64_t>(entry.usage.retiring_replicas);
  if (retiring != options.objects) fail_with("the resumed job left something");
  if (const std::string broken = check_invariants(*view); !broken.empty()) fail_with(broken);
  return figures;
}

// ---- Output
// ---------------------------------------------------------------------------------------------

void print_table(const std::string& event, const std::vector<Figures>& runs) {
  const auto f = [&](const std::string& name) { return median_of(runs, name); };
  std::printf(
      "%-10s answered %.1f ms, unseen after %.1f ms, job ended after %.0f ms, all free after "
      "%.0f ms\n",
      event.c_str(), f("answered_ms"), f("visible_ms"), f("job_ms"), f("freed_ms"));
  std::printf("           %.0f slices, the largest %.0f us and %.0f records\n", f("slices"),
              f("slice_us_max"), f("slice_records_max"));
  for (const std::string prefix : {"baseline_", ""})
    std::printf(
        "           %-13s reserve/commit p50 %.3f p99 %.3f max %.3f ms   probe p50 %.4f p99 "
        "%.4f max %.3f ms\n",
        prefix.empty() ? "during it" : "with no job", f(prefix + "store_p50_ms"),
        f(prefix + "store_p99_ms"), f(prefix + "store_max_ms"), f(prefix + "probe_p50_ms"),
        f(prefix + "probe_p99_ms"), f(prefix + "probe_max_ms"));
  std::fflush(stdout);
}

void print_json(const std::string& event, const std::vector<Figures>& runs) {
  std::printf("{\"event\": \"%s\", \"runs\": %zu", event.c_str(), runs.size());
  for (const auto& [name, value] : runs.front())
    std::printf(", \"%s\": %.4f", name.c_str(), median_of(runs, name));
  std::printf("}\n");
  std::fflush(stdout);
}

int run_benchmark(const Options& options) {
  if (options.event.empty() || options.event == "resume") {
    const Figures resumed = run_resume(options);
    if (options.json) {
      print_json("resume", {resumed});
    } else {
      std::printf(
          "resume     killed at %.0f of %llu, restarted in %.0f ms at %.0f, ended after %.0f ms "
          "and %.0f slices\n",
          resumed.at("killed_at"), static_cast<unsigned long long>(options.objects),
          resumed.at("restart_ms"), resumed.at("resumed_at"), resumed.at("job_ms"),
          resumed.at("slices"));
      std::fflush(stdout);
    }
  }
  for (const std::string event : {"fence", "drain", "namespace", "trim"}) {
    if (!options.event.empty() && options.event != event) continue;
    std::vector<Figures> runs;
    for (uint64_t run = 0; run < options.runs; ++run) runs.push_back(run_event(event, options));
    if (options.json)
      print_json(event, runs);
    else
      print_table(event, runs);
  }
  return 0;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--objects" && has_value)
      options.objects = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--runs" && has_value)
      options.runs = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--slice-records" && has_value)
      options.slice_records = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    else if (argument == "--event" && has_value)
      options.event = argv[++i];
    else if (argument == "--json")
      options.json = true;
    else {
      std::fprintf(stderr,
                   "usage: berth-bench-mass [--objects N] [--runs N] [--slice-records N] [--event "
                   "fence|drain|namespace|trim|resume] [--json]\n");
      return argument == "--help" ? 0 : 2;
    }
  }
  if (options.objects == 0 || options.runs == 0) {
    std::fprintf(stderr, "berth-bench-mass: --objects and --runs take 1 or more\n");
    return 2;
  }
  return berth::bench::run_benchmark(options);
}
