#include <map>
#include <utility>

#include "server/ctl/fields.h"
#include "server/ctl/pool_words.h"
#include "server/ctl/status.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

using Usage = v1::PoolUsage;
using Response = v1::GetUsageResponse;

// Sums over the pools of one worker or one node.
struct Total {
  std::string node;
  std::string worker;
  uint64_t session = 0;
  uint64_t pools = 0;
  uint64_t gone_bytes = 0;
  uint64_t node_budget_bytes = 0;
  Usage usage;
};

void add(Usage& sum, const Usage& usage) {
  sum.set_capacity_bytes(sum.capacity_bytes() + usage.capacity_bytes());
  sum.set_budget_bytes(sum.budget_bytes() + usage.budget_bytes());
  sum.set_backing_bytes(sum.backing_bytes() + usage.backing_bytes());
  sum.set_pinned_bytes(sum.pinned_bytes() + usage.pinned_bytes());
  sum.set_allocated_bytes(sum.allocated_bytes() + usage.allocated_bytes());
  sum.set_reserved_bytes(sum.reserved_bytes() + usage.reserved_bytes());
  sum.set_ready_bytes(sum.ready_bytes() + usage.ready_bytes());
  sum.set_ready_allocated_bytes(sum.ready_allocated_bytes() + usage.ready_allocated_bytes());
  sum.set_retiring_bytes(sum.retiring_bytes() + usage.retiring_bytes());
  sum.set_quarantined_bytes(sum.quarantined_bytes() + usage.quarantined_bytes());
  sum.set_ready_replicas(sum.ready_replicas() + usage.ready_replicas());
  sum.set_reserved_replicas(sum.reserved_replicas() + usage.reserved_replicas());
  sum.set_retiring_replicas(sum.retiring_replicas() + usage.retiring_replicas());
  sum.set_quarantined_replicas(sum.quarantined_replicas() + usage.quarantined_replicas());
  sum.set_leased_replicas(sum.leased_replicas() + usage.leased_replicas());
  sum.set_pinned_replicas(sum.pinned_replicas() + usage.pinned_replicas());
  sum.set_hard_pin_bytes(sum.hard_pin_bytes() + usage.hard_pin_bytes());
}

// The figures are the same for a pool and for a sum of pools.
template <class Record>
void append_usage_fields(std::vector<Field<Record>>& fields, const Usage& (*of)(const Record&)) {
  const auto bytes = [&](std::string_view key, std::string_view title,
                         uint64_t (Usage::*get)() const, Shown shown = Shown::kEverywhere,
                         bool alarming = false) {
    fields.push_back({{key, title, Kind::kBytes, shown, alarming},
                      [of, get](const Record& r) -> Value { return (of(r).*get)(); }});
  };
  const auto count = [&](std::string_view key, uint64_t (Usage::*get)() const,
                         std::string_view title = "") {
    const Shown shown = title.empty() ? Shown::kDataOnly : Shown::kEverywhere;
    fields.push_back({{key, title, Kind::kCount, shown},
                      [of, get](const Record& r) -> Value { return (of(r).*get)(); }});
  };
  bytes("capacity_bytes", "CAPACITY", &Usage::capacity_bytes);
  bytes("budget_bytes", "BUDGET", &Usage::budget_bytes, Shown::kDataOnly);
  bytes("backing_bytes", "BACKING", &Usage::backing_bytes);
  bytes("allocated_bytes", "ALLOCATED", &Usage::allocated_bytes);
  bytes("reserved_bytes", "RESERVED", &Usage::reserved_bytes);
  bytes("ready_bytes", "READY", &Usage::ready_bytes);
  bytes("ready_allocated_bytes", "READY-ALLOC", &Usage::ready_allocated_bytes);
  bytes("retiring_bytes", "RETIRING", &Usage::retiring_bytes);
  bytes("quarantined_bytes", "QUARANTINED", &Usage::quarantined_bytes, Shown::kEverywhere, true);
  bytes("pinned_bytes", "PINNED", &Usage::pinned_bytes);
  count("ready_replicas", &Usage::ready_replicas);
  count("reserved_replicas", &Usage::reserved_replicas);
  count("retiring_replicas", &Usage::retiring_replicas);
  count("quarantined_replicas", &Usage::quarantined_replicas);
  count("leased_replicas", &Usage::leased_replicas);
  count("pinned_replicas", &Usage::pinned_replicas, "PINS");
  bytes("hard_pin_bytes", "", &Usage::hard_pin_bytes, Shown::kDataOnly);
}

const std::vector<Field<v1::PoolRow>>& pool_usage_fields() {
  static const std::vector<Field<v1::PoolRow>> fields = [] {
    std::vector<Field<v1::PoolRow>> list = {
        {{"pool", "POOL", Kind::kId}, [](const auto& r) -> Value { return r.pool(); }},
        {{"name", "NAME"}, [](const auto& r) -> Value { return r.spec().name(); }},
        {{"worker", "WORKER"}, [](const auto& r) -> Value { return r.owner_name(); }},
        {{"node", "NODE", Kind::kText, Shown::kDataOnly},
         [](const auto& r) -> Value { return r.node(); }},
        {{"medium", "MEDIUM", Kind::kWord, Shown::kDataOnly}, medium_word},
        {{"tier", "TIER", Kind::kWord, Shown::kDataOnly}, tier_word},
        {{"scope", "SCOPE", Kind::kWord, Shown::kDataOnly}, scope_word},
        {{"state", "STATE", Kind::kWord}, pool_state_word},
        {{"exported_to", "EXPORTED-TO", Kind::kList, Shown::kDataOnly},
         [](const auto& r) -> Value { return pool_importers(r); }},
    };
    append_usage_fields<v1::PoolRow>(
        list, [](const v1::PoolRow& r) -> const Usage& { return r.usage(); });
    return list;
  }();
  return fields;
}

const Usage& usage_of_total(const Total& total) { return total.usage; }

const std::vector<Field<Total>>& worker_fields() {
  static const std::vector<Field<Total>> fields = [] {
    std::vector<Field<Total>> list = {
        {{"worker", "WORKER"}, [](const Total& t) -> Value { return t.worker; }},
        {{"session", "SESSION", Kind::kId, Shown::kDataOnly},
         [](const Total& t) -> Value { return t.session; }},
        {{"node", "NODE"}, [](const Total& t) -> Value { return t.node; }},
        {{"pools", "POOLS", Kind::kCount}, [](const Total& t) -> Value { return t.pools; }},
    };
    append_usage_fields<Total>(list, usage_of_total);
    return list;
  }();
  return fields;
}

const std::vector<Field<Total>>& node_fields() {
  static const std::vector<Field<Total>> fields = [] {
    std::vector<Field<Total>> list = {
        {{"node", "NODE"}, [](const Total& t) -> Value { return t.node; }},
        {{"pools", "POOLS", Kind::kCount}, [](const Total& t) -> Value { return t.pools; }},
        {{"node_budget_bytes", "LIMIT", Kind::kBytes},
         [](const Total& t) { return none_if_zero(t.node_budget_bytes); }},
        {{"gone_bytes", "GONE", Kind::kBytes, Shown::kEverywhere, true},
         [](const Total& t) -> Value { return t.gone_bytes; }},
    };
    append_usage_fields<Total>(list, usage_of_total);
    return list;
  }();
  return fields;
}

const std::vector<Field<v1::NamespaceRow>>& namespace_usage_fields() {
  using Namespace = v1::NamespaceRow;
  static const std::vector<Field<Namespace>> fields = {
      {{"namespace", "NAMESPACE"}, [](const Namespace& n) -> Value { return n.spec().name(); }},
      {{"quota_bytes", "QUOTA", Kind::kBytes},
       [](const Namespace& n) { return none_if_zero(n.quota_bytes()); }},
      {{"allocated_bytes", "ALLOCATED", Kind::kBytes},
       [](const Namespace& n) -> Value { return n.allocated_bytes(); }},
      {{"ready_bytes", "READY", Kind::kBytes},
       [](const Namespace& n) -> Value { return n.ready_bytes(); }},
      {{"replicas", "REPLICAS", Kind::kCount},
       [](const Namespace& n) -> Value { return n.replicas(); }},
  };
  return fields;
}

std::vector<Total> totals_by_worker(const Response& response) {
  // A GONE pool has no session any more but still the name of the worker that had it.
  std::map<std::pair<std::string, std::string>, Total> totals;
  for (const v1::PoolRow& pool : response.pools()) {
    Total& total = totals[{pool.node(), pool.owner_name()}];
    total.node = pool.node();
    total.worker = pool.owner_name();
    total.session = std::max(total.session, pool.owner());
    ++total.pools;
    add(total.usage, pool.usage());
  }
  std::vector<Total> list;
  for (auto& [key, total] : totals) list.push_back(std::move(total));
  return list;
}

std::vector<Total> totals_by_node(const Response& response) {
  std::map<std::string, Total> totals;
  for (const v1::PoolRow& pool : response.pools()) {
    Total& total = totals[pool.node()];
    ++total.pools;
    add(total.usage, pool.usage());
  }
  // What the server charges to the host is its own sum, GONE pools included.
  for (const v1::NodeRow& node : response.nodes()) {
    Total& total = totals[node.node()];
    total.pools = node.pools();
    total.gone_bytes = node.gone_bytes();
    total.node_budget_bytes = node.budget_bytes();
    total.usage.set_backing_bytes(node.backing_bytes());
  }
  std::vector<Total> list;
  for (auto& [name, total] : totals) {
    total.node = name;
    list.push_back(std::move(total));
  }
  return list;
}

void note_hidden_pools(const Response& response, std::vector<std::string>& notes) {
  size_t unverified = 0;
  size_t silent = 0;
  size_t draining = 0;
  for (const v1::PoolRow& pool : response.pools()) {
    unverified += pool.state() == v1::POOL_STATE_UNVERIFIED;
    silent += pool.state() == v1::POOL_STATE_SILENT;
    draining += pool.draining();
  }
  if (unverified > 0)
    notes.push_back(std::to_string(unverified) + " of " + std::to_string(response.pools_size()) +
                    " pools are hidden until their workers re-attach");
  if (silent > 0)
    notes.push_back(std::to_string(silent) + " of " + std::to_string(response.pools_size()) +
                    " pools are hidden because their workers missed their heartbeats");
  if (draining > 0)
    notes.push_back(std::to_string(draining) + " of " + std::to_string(response.pools_size()) +
                    " pools are hidden because they drain; `berthctl undrain` ends that");
}

// What the figures mean depends on the server's health, so it is asked first.
Answer<std::vector<std::string>> notes_if_ready(AdminClient& client) {
  auto status = client.call(v1::GetStatusRequest{});
  if (!status) return fail(std::move(status.error()));
  std::vector<std::string> notes;
  switch (status->health()) {
    case v1::HEALTH_STARTING:
    case v1::HEALTH_STOPPING:
      return fail({ExitCode::kNotReady, health_sentence(client, *status),
                   "Wait until `berthctl status` says serving, then retry.", ""});
    case v1::HEALTH_DEGRADED:
      notes.push_back(health_sentence(client, *status));
      break;
    default:
      break;
  }
  return notes;
}

Answer<Outcome> produce_usage(AdminClient& client, const Arguments&) {
  auto notes = notes_if_ready(client);
  if (!notes) return fail(std::move(notes.error()));
  auto response = client.call(v1::GetUsageRequest{});
  if (!response) return fail(std::move(response.error()));
  Outcome outcome;
  outcome.notes = std::move(*notes);
  note_hidden_pools(*response, outcome.notes);
  const SectionText pools{"pools",
                          "No pools: the server is ready, but no worker has registered one yet."};
  outcome.view.sections = {
      section_of(pools, pool_usage_fields(), response->pools()),
      section_of(SectionText{"workers"}, worker_fields(), totals_by_worker(*response)),
      section_of(SectionText{"nodes"}, node_fields(), totals_by_node(*response)),
      section_of(SectionText{"namespaces"}, namespace_usage_fields(), response->namespaces()),
  };
  return outcome;
}

}  // namespace

Command usage_command() {
  return {
      .name = "usage",
      .summary = "Bytes per pool, worker, node and namespace",
      .details =
          "ALLOCATED = RESERVED + READY-ALLOC + RETIRING + QUARANTINED. READY is the KV bytes "
          "proper,\n"
          "READY-ALLOC the pages that they take; BACKING is what the medium holds for the pool, "
          "PINNED\n"
          "what is really pinned of it, PINS the copies that no policy may evict. GONE is memory "
          "of dead workers that may still be mapped.\n"
          "An empty server exits with 0, one that cannot be reached with 3, one that is starting "
          "or\n"
          "stopping with 4.",
      .example = "berthctl usage\nberthctl usage -w 2\nberthctl usage --csv > usage.csv",
      .positionals = {},
      .options = {},
      .produce = produce_usage};
}

}  // namespace berth::ctl
