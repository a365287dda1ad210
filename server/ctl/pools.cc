#include <algorithm>

#include "server/ctl/list_options.h"
#include "server/ctl/pages.h"
#include "server/ctl/pool_words.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

const std::vector<Field<v1::PoolRow>>& pool_fields() {
  using Pool = v1::PoolRow;
  static const std::vector<Field<Pool>> fields = {
      {{"pool", "POOL", Kind::kId}, [](const Pool& p) -> Value { return p.pool(); }},
      {{"name", "NAME"}, [](const Pool& p) -> Value { return p.spec().name(); }},
      {{"worker", "WORKER"}, [](const Pool& p) -> Value { return p.owner_name(); }},
      {{"session", "SESSION", Kind::kId, Shown::kDataOnly},
       [](const Pool& p) -> Value { return p.owner(); }},
      {{"node", "NODE"}, [](const Pool& p) -> Value { return p.node(); }},
      {{"medium", "MEDIUM", Kind::kWord}, medium_word},
      {{"tier", "TIER", Kind::kWord}, tier_word},
      {{"scope", "SCOPE", Kind::kWord}, scope_word},
      {{"engine", "ENGINE", Kind::kText, Shown::kDataOnly},
       [](const Pool& p) -> Value { return p.spec().engine(); }},
      {{"access_domain", "DOMAIN", Kind::kText, Shown::kDataOnly},
       [](const Pool& p) -> Value { return p.spec().access_domain(); }},
      {{"state", "STATE", Kind::kWord}, pool_state_word},
      {{"draining", "DRAINING", Kind::kFlag, Shown::kDataOnly},
       [](const Pool& p) -> Value { return p.draining(); }},
      {{"capacity_bytes", "CAPACITY", Kind::kBytes},
       [](const Pool& p) -> Value { return p.spec().capacity_bytes(); }},
      {{"budget_bytes", "BUDGET", Kind::kBytes, Shown::kDataOnly},
       [](const Pool& p) -> Value { return p.usage().budget_bytes(); }},
      {{"page_bytes", "PAGE", Kind::kBytes},
       [](const Pool& p) -> Value { return p.spec().page_bytes(); }},
      {{"allocated_bytes", "ALLOCATED", Kind::kBytes},
       [](const Pool& p) -> Value { return p.usage().allocated_bytes(); }},
      {{"free_bytes", "FREE", Kind::kBytes}, [](const Pool& p) -> Value { return p.free_bytes(); }},
      {{"largest_hole_bytes", "LARGEST-HOLE", Kind::kBytes},
       [](const Pool& p) -> Value { return p.largest_hole_bytes(); }},
      {{"writing_bytes", "WRITING", Kind::kBytes},
       [](const Pool& p) -> Value { return p.writing_bytes(); }},
      {{"spans_out", "SPANS-OUT", Kind::kCount},
       [](const Pool& p) -> Value { return p.spans_out(); }},
      {{"ready_replicas", "READY", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().ready_replicas(); }},
      {{"leased_replicas", "LEASED", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().leased_replicas(); }},
      {{"pinned_replicas", "PINS", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().pinned_replicas(); }},
      {{"hard_pin_bytes", "HARD-PINS", Kind::kBytes, Shown::kDataOnly},
       [](const Pool& p) -> Value { return p.usage().hard_pin_bytes(); }},
      {{"quarantined_replicas", "QUARANTINED", Kind::kCount, Shown::kEverywhere, true},
       [](const Pool& p) -> Value { return p.usage().quarantined_replicas(); }},
      {{"exported_to", "EXPORTED-TO", Kind::kList},
       [](const Pool& p) -> Value { return pool_importers(p); }},
      {{"importers", "IMPORTERS", Kind::kList},
       [](const Pool& p) -> Value {
         return std::vector<std::string>(p.importers().begin(), p.importers().end());
       }},
  };
  return fields;
}

Answer<Outcome> produce_pools(AdminClient& client, const Arguments& arguments) {
  return produce_list<v1::PoolRow>(
      client, v1::ListPoolsRequest{}, arguments,
      {{"pools", "No pools: the server is ready, but no worker has registered one yet."},
       pool_fields()},
      [](auto& response) { return response.mutable_pools(); },
      [](const v1::PoolRow& row) { return row.pool(); });
}

}  // namespace

Value medium_word(const v1::PoolRow& row) {
  return word_of(v1::Medium_Name(row.spec().medium()), "MEDIUM_", row.spec().medium());
}
Value tier_word(const v1::PoolRow& row) {
  return word_of(v1::Tier_Name(row.spec().tier()), "TIER_", row.spec().tier());
}
Value scope_word(const v1::PoolRow& row) {
  return word_of(v1::Scope_Name(row.spec().scope()), "SCOPE_", row.spec().scope());
}
Value pool_state_word(const v1::PoolRow& row) {
  return word_of(v1::PoolState_Name(row.state()), "POOL_STATE_", row.state());
}

std::vector<std::string> pool_importers(const v1::PoolRow& row) {
  std::vector<std::string> importers;
  for (const v1::PoolExport& e : row.exports())
    importers.push_back(e.worker() + (e.session() == 0 ? " (dead)"
                                      : e.imported()   ? ""
                                                       : " (passed)"));
  std::sort(importers.begin(), importers.end());
  return importers;
}

Command pools_command() {
  return {.name = "pools",
          .summary = "Pools: what they are, their state, their holes",
          .details =
              "FREE, LARGEST-HOLE, WRITING and SPANS-OUT are what the owner's last heartbeat said. "
              "IMPORTERS are\n"
              "the life locks of a gone pool that are not yet proven free. PINS are copies that no "
              "policy may evict.",
          .example =
              "berthctl pools\nberthctl pools --json | jq '.pools[] | select(.state != \"live\")'",
          .positionals = {},
          .options = {kLimitOption},
          .produce = produce_pools};
}

}  // namespace berth::ctl
