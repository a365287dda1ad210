#include <algorithm>

#include "server/ctl/fields.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

// Below every server's bound on one request, so that any number of replicas can be named.
constexpr size_t kReplicasPerCall = 256;

struct Eviction {
  uint64_t replica = 0;
  bool retired = false;
};

const std::vector<Field<Eviction>>& eviction_fields() {
  static const std::vector<Field<Eviction>> fields = {
      {{"replica", "REPLICA", Kind::kId}, [](const Eviction& e) -> Value { return e.replica; }},
      {{"retired", "RETIRED", Kind::kFlag}, [](const Eviction& e) -> Value { return e.retired; }},
  };
  return fields;
}

Answer<std::vector<Eviction>> parse_replicas(const Arguments& arguments) {
  std::vector<Eviction> evictions;
  for (const std::string& text : arguments.all("REPLICA")) {
    const auto replica = parse_id("REPLICA", text);
    if (!replica) return fail(replica.error());
    evictions.push_back({.replica = *replica});
  }
  return evictions;
}

Answer<Outcome> evict(AdminClient& client, const Arguments& arguments) {
  auto evictions = parse_replicas(arguments);
  if (!evictions) return fail(std::move(evictions.error()));
  size_t kept = 0;
  for (size_t begin = 0; begin < evictions->size(); begin += kReplicasPerCall) {
    const size_t end = std::min(begin + kReplicasPerCall, evictions->size());
    v1::EvictRequest request;
    for (size_t i = begin; i < end; ++i) request.add_replicas((*evictions)[i].replica);
    auto answer = client.call(request);
    if (!answer) {
      if (begin > 0)
        answer.error().message +=
            "; the first " + std::to_string(begin) + " replicas were retired where READY";
      return fail(std::move(answer.error()));
    }
    for (size_t i = begin; i < end; ++i) {
      const size_t column = i - begin;
      (*evictions)[i].retired = column < answer->retired().size() && answer->retired()[column] == 1;
      kept += !(*evictions)[i].retired;
    }
  }
  Outcome outcome{.view =
                      view_of(section_of(SectionText{"evicted"}, eviction_fields(), *evictions))};
  if (kept > 0) {
    outcome.exit_code = ExitCode::kRefused;
    outcome.notes.push_back(std::to_string(kept) + " of " + std::to_string(evictions->size()) +
                            " replicas were not READY or are not known");
  }
  return outcome;
}

}  // namespace

Command evict_command() {
  return {.name = "evict",
          .summary = "Retire READY replicas by name",
          .details =
              "Leases keep an evicted replica until they end; no new reader gets it. Exits with 1 "
              "when one of\n"
              "them was not READY or is not known; the others are retired all the same.",
          .example = "berthctl evict e3-17 e3-18",
          .positionals = {{"REPLICA", "Replica ids, e.g. e3-17", Arity::kMany}},
          .options = {},
          .kind = CommandKind::kAction,
          .produce = evict,
          .timeout = seconds(30)};
}

}  // namespace berth::ctl
