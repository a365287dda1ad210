#include "server/directory_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "common/version.h"
#include "server/rpc/resident_memory.h"
#include "server/rpc/views.h"

namespace berth {
namespace {

constexpr std::array kMedia{Medium::kCpu, Medium::kCxl, Medium::kSsd};
constexpr std::array<std::pair<v1::PoolState, std::string_view>, 6> kPoolStates{
    {{v1::POOL_STATE_LIVE, "live"},
     {v1::POOL_STATE_DRAINING, "draining"},
     {v1::POOL_STATE_UNVERIFIED, "unverified"},
     {v1::POOL_STATE_SILENT, "silent"},
     {v1::POOL_STATE_CLOSING, "closing"},
     {v1::POOL_STATE_GONE, "gone"}}};
constexpr std::array<std::pair<v1::SessionState, std::string_view>, 5> kSessionStates{
    {{v1::SESSION_STATE_ATTACHED, "attached"},
     {v1::SESSION_STATE_REATTACHING, "reattaching"},
     {v1::SESSION_STATE_DETACHED, "detached"},
     {v1::SESSION_STATE_SILENT, "silent"},
     {v1::SESSION_STATE_ENDING, "ending"}}};

// Everything about the pools of one medium, added up.
struct MediumSums {
  uint64_t capacity = 0;
  uint64_t budget = 0;
  uint64_t backing = 0;
  uint64_t pinned = 0;
  uint64_t writing = 0;
  uint64_t free = 0;
  uint64_t largest_hole = 0;
  uint64_t spans_out = 0;
  int64_t leased = 0;
  PoolUsage usage;
  std::map<v1::PoolState, uint64_t> pools;
};

struct DirectorySums {
  std::map<Medium, MediumSums> media;
  std::map<std::pair<Role, v1::SessionState>, uint64_t> sessions;
  uint64_t replicas = 0;
  uint64_t objects = 0;
  uint64_t table_bytes = 0;
  uint64_t leases = 0;
  uint64_t reservations = 0;
  uint64_t operations = 0;
  uint64_t namespaces = 0;
  uint64_t jobs = 0;
  uint64_t pins = 0;
  uint64_t soft_pins = 0;  // of them
  EvictionSetting eviction;
  Epoch epoch = 0;
};

void add_pool(MediumSums& sums, const Directory& directory, const PoolEntry& entry) {
  const PoolSpec& spec = entry.pool.spec;
  ++sums.pools[rpc::state_of(directory, entry.pool)];
  sums.backing += spec.backing_bytes;
  sums.usage += entry.usage;
  sums.leased += entry.leased_replicas;
  // Memory of a dead owner is charged, but nobody can store into it.
  if (entry.pool.state == PoolState::kGone) return;
  sums.capacity += spec.capacity_bytes;
  sums.budget += spec.budget_bytes;
  sums.pinned += spec.pinned_bytes;
  const auto* report = directory.find<PoolReport>(entry.pool.id);
  if (!report) return;
  sums.writing += report->writing_bytes;
  sums.free += report->free_bytes;
  sums.largest_hole = std::max(sums.largest_hole, report->largest_hole_bytes);
  sums.spans_out += report->spans_out;
}

// Pools and sessions are walked, replicas never: the view is held for microseconds.
DirectorySums sums_of(const Directory& directory, const DirectoryConfig& config) {
  DirectorySums sums;
  for (const auto& [id, entry] : directory.pools())
    add_pool(sums.media[entry.pool.spec.medium], directory, entry);
  for (const auto& [id, session] : directory.sessions())
    ++sums.sessions[{session.role, rpc::state_of(directory, session)}];
  sums.replicas = directory.replicas().size();
  sums.objects = directory.replicas().object_count();
  sums.table_bytes = directory.replicas().memory_bytes();
  sums.leases = directory.leases().size();
  sums.reservations = directory.reservations().size();
  sums.operations = directory.operations().size();
  sums.namespaces = directory.namespaces().size();
  sums.jobs = directory.jobs().size();
  sums.pins = directory.pins().size();
  sums.soft_pins = directory.pin_deadlines().size();
  sums.eviction = eviction_in_force(directory, config);
  sums.epoch = directory.meta().epoch;
  return sums;
}

template <class T>
double number(T value) {
  return static_cast<double>(value);
}

void report_medium(MetricSamples& out, std::string_view medium, const MediumSums& sums) {
  const auto gauge = [&](const char* name, const char* help, auto value) {
    out.gauge({name, help}, {{"medium", medium}}, number(value));
  };
  gauge("berth_capacity_bytes", "Capacity of the pools whose owners live.", sums.capacity);
  gauge("berth_budget_bytes", "The most that may be granted in them.", sums.budget);
  gauge("berth_backing_bytes", "What the media hold for pools, dead owners' included.",
        sums.backing);
  gauge("berth_pinned_bytes", "What owners have really pinned.", sums.pinned);
  gauge("berth_ready_bytes", "Logical bytes of READY replicas.", sums.usage.ready_bytes);
  gauge("berth_leased_replicas", "Replicas that at least one lease protects.", sums.leased);
  gauge("berth_hard_pin_bytes", "Pages of replicas that a hard pin keeps.",
        sums.usage.hard_pin_bytes);
  gauge("berth_writing_bytes", "Pages whose bytes are moving, as owners last said.", sums.writing);
  gauge("berth_free_bytes", "Free bytes, as owners last said.", sums.free);
  gauge("berth_largest_hole_bytes", "Longest free run of any pool, as owners last said.",
        sums.largest_hole);
  gauge("berth_spans_out", "Spans that clients hold, as owners last said.", sums.spans_out);

  const PoolUsage& usage = sums.usage;
  const std::array<std::tuple<std::string_view, int64_t, int64_t>, 4> states{
      {{"reserved", usage.reserved_bytes, usage.reserved_replicas},
       {"ready", usage.ready_allocated_bytes, usage.ready_replicas},
       {"retiring", usage.retiring_bytes, usage.retiring_replicas},
       {"quarantined", usage.quarantined_bytes, usage.quarantined_replicas}}};
  for (const auto& [state, bytes, replicas] : states) {
    out.gauge({"berth_allocated_bytes", "Pages charged to replicas, by the replicas' state."},
              {{"medium", medium}, {"state", state}}, number(bytes));
    out.gauge({"berth_replicas", "Replicas by state."}, {{"medium", medium}, {"state", state}},
              number(replicas));
  }
  for (const auto& [state, label] : kPoolStates) {
    const auto found = sums.pools.find(state);
    out.gauge({"berth_pools", "Pools by state."}, {{"medium", medium}, {"state", label}},
              number(found == sums.pools.end() ? 0 : found->second));
  }
}

void report_sessions(MetricSamples& out, const DirectorySums& sums) {
  for (const Role role : {Role::kWorker, Role::kClient})
    for (const auto& [state, label] : kSessionStates) {
      const auto found = sums.sessions.find({role, state});
      out.gauge({"berth_sessions", "Sessions by role and state."},
                {{"role", role == Role::kWorker ? "worker" : "client"}, {"state", label}},
                number(found == sums.sessions.end() ? 0 : found->second));
    }
}

void report_directory(MetricSamples& out, const DirectorySums& sums) {
  const auto gauge = [&](const char* name, const char* help, auto value) {
    out.gauge({name, help}, {}, number(value));
  };
  for (const Medium medium : kMedia) {
    const auto found = sums.media.find(medium);
    report_medium(out, name_of(medium), found == sums.media.end() ? MediumSums{} : found->second);
  }
  report_sessions(out, sums);
  gauge("berth_objects", "Distinct objects with at least one replica.", sums.objects);
  gauge("berth_replica_table_bytes", "Memory of the table of replicas.", sums.table_bytes);
  gauge("berth_leases", "Leases.", sums.leases);
  gauge("berth_reservations", "Reserves with items that are still open.", sums.reservations);
  gauge("berth_operations", "Answers kept for retries.", sums.operations);
  gauge("berth_namespaces", "Namespaces.", sums.namespaces);
  gauge(
      "berth_jobs",
      "Long works under way (ending sessions, closing, drained, trimmed and dropped pools, evicted "
      "namespaces).",
      sums.jobs);
  gauge("berth_epoch", "Epoch of the server; rises at every start.", sums.epoch);
}

void report_eviction(MetricSamples& out, const DirectorySums& sums, const SequencerStats& stats) {
  out.gauge({"berth_pins", "Replicas that a pin keeps from being evicted, by kind."},
            {{"kind", name_of(PinKind::kSoft)}}, number(sums.soft_pins));
  out.gauge({"berth_pins", "Replicas that a pin keeps from being evicted, by kind."},
            {{"kind", name_of(PinKind::kHard)}}, number(sums.pins - sums.soft_pins));
  for (const policy::EvictionKind kind : policy::kEvictionKinds)
    out.gauge({"berth_eviction_policy", "1 for the policy in force, 0 for the others."},
              {{"policy", policy::name_of(kind)}}, kind == sums.eviction.kind ? 1 : 0);
  const auto watermark = [&](std::string_view which, uint32_t permille) {
    out.gauge({"berth_eviction_watermark_ratio",
               "Share of a pool's budget where eviction starts "
               "(high) and stops (low)."},
              {{"watermark", which}}, number(permille) / 1e3);
  };
  watermark("high", sums.eviction.high_permille);
  watermark("low", sums.eviction.low_permille);
  const policy::EvictorStats& evictor = stats.eviction;
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    out.counter({name, help}, {}, number(value));
  };
  counter("berth_eviction_slices_total", "Slices that chose victims.", evictor.slices);
  counter("berth_eviction_nothing_evictable_total", "Slices that found nothing that may leave.",
          evictor.nothing_evictable);
  counter("berth_eviction_refused_total", "Victims that somebody had begun to read or pinned.",
          evictor.refused);
  out.gauge({"berth_eviction_slice_replicas_max", "Largest slice since the start."}, {},
            number(evictor.slice_replicas_max));
  out.gauge({"berth_eviction_slice_seconds_max", "Slowest slice since the start."}, {},
            number(stats.eviction_slice_micros_max) / 1e6);
  out.gauge({"berth_eviction_memory_bytes", "Memory of all eviction policies and their table."}, {},
            number(stats.eviction_memory_bytes));
}

void report_sequencer(MetricSamples& out, const Sequencer& sequencer, const SequencerStats& stats) {
  const auto counter = [&](const char* name, const char* help, double value) {
    out.counter({name, help}, {}, value);
  };
  counter("berth_commands_total", "Commands decided.", number(stats.commands));
  counter("berth_commands_refused_total", "Commands refused by the directory.",
          number(stats.refused));
  counter("berth_batches_total", "Writes to the store.", number(stats.batches));
  counter("berth_records_total", "Records changed.", number(stats.records));
  counter("berth_commit_failures_total", "Writes and fsyncs that the store failed.",
          number(stats.commit_failures));
  counter("berth_queue_full_total", "Commands refused because the queue was full.",
          number(stats.queue_full));
  counter("berth_stall_seconds_total", "Stalls of the server that deadlines were moved for.",
          number(stats.stall_millis) / 1e3);
  out.gauge({"berth_queue_commands", "Commands that wait for the writer."}, {},
            number(stats.queued));
  out.gauge({"berth_queue_commands_max", "The most that may wait."}, {},
            number(sequencer.config().queue_commands_max));
  out.gauge({"berth_slice_seconds_max", "Longest slice of long work since the start."}, {},
            number(stats.slice_micros_max) / 1e6);
}

}  // namespace

void add_directory_metrics(MetricsRegistry& registry, const Sequencer& sequencer,
                           const rpc::ServerHealth& health) {
  registry.add_collector([&](MetricSamples& out) {
    const DirectorySums sums = [&] {
      const auto view = sequencer.view();
      return sums_of(*view, sequencer.config().directory);
    }();
    report_directory(out, sums);
    const SequencerStats stats = sequencer.stats();
    report_eviction(out, sums, stats);
    report_sequencer(out, sequencer, stats);
    out.gauge({"berth_retired_history_bytes", "Memory of the copies that left lately."}, {},
              number(sequencer.retired().memory_bytes()));
    const auto now = health.get().health;
    out.gauge(
        {"berth_serving", "1 while calls are served, 0 while starting, degraded or stopping."}, {},
        now == v1::HEALTH_SERVING ? 1 : 0);
    out.gauge({"berth_store_degraded", "1 while the store cannot be written."}, {},
              now == v1::HEALTH_DEGRADED ? 1 : 0);
    out.gauge({"berth_build_info", "Always 1; the version is a label."}, {{"version", kVersion}},
              1);
    out.gauge({"process_resident_memory_bytes", "Resident memory of berthd."}, {},
              number(rpc::resident_bytes()));
  });
}

}  // namespace berth
