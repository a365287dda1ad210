// How pools make room: which policy, between which watermarks, and what each policy holds.
#include "server/ctl/fields.h"
#include "server/ctl/percent.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

Value percent_of(uint32_t permille) {
  return std::to_string(permille / 10) +
         (permille % 10 ? "." + std::to_string(permille % 10) : "") + "%";
}

// Tables say percent, data the exact figure.
template <class Record>
void append_setting_fields(std::vector<Field<Record>>& fields,
                           const v1::EvictionPolicy& (*of)(const Record&)) {
  fields.push_back({{"policy", "Policy", Kind::kWord},
                    [of](const Record& r) -> Value { return of(r).policy(); }});
  fields.push_back({{"", "High watermark", Kind::kText, Shown::kTableOnly},
                    [of](const Record& r) { return percent_of(of(r).high_permille()); }});
  fields.push_back({{"high_permille", "", Kind::kCount, Shown::kDataOnly},
                    [of](const Record& r) -> Value { return uint64_t{of(r).high_permille()}; }});
  fields.push_back({{"", "Low watermark", Kind::kText, Shown::kTableOnly},
                    [of](const Record& r) { return percent_of(of(r).low_permille()); }});
  fields.push_back({{"low_permille", "", Kind::kCount, Shown::kDataOnly},
                    [of](const Record& r) -> Value { return uint64_t{of(r).low_permille()}; }});
}

const std::vector<Field<v1::GetPolicyResponse>>& policy_fields() {
  using Policy = v1::GetPolicyResponse;
  static const std::vector<Field<Policy>> fields = [] {
    std::vector<Field<Policy>> list;
    append_setting_fields<Policy>(
        list, [](const Policy& p) -> const v1::EvictionPolicy& { return p.policy(); });
    list.insert(list.end(), {{{"from_configuration", "As configured", Kind::kFlag},
                              [](const Policy& p) -> Value { return p.from_configuration(); }},
                             {{"memory_bytes", "Memory", Kind::kBytes},
                              [](const Policy& p) -> Value { return p.memory_bytes(); }},
                             {{"slices", "Slices", Kind::kCount},
                              [](const Policy& p) -> Value { return p.slices(); }},
                             {{"evicted_replicas", "Evicted", Kind::kCount},
                              [](const Policy& p) -> Value { return p.evicted_replicas(); }},
                             {{"slice_replicas_max", "Largest slice", Kind::kCount},
                              [](const Policy& p) -> Value { return p.slice_replicas_max(); }},
                             {{"slice_us_max", "Slowest slice (us)", Kind::kCount},
                              [](const Policy& p) -> Value { return p.slice_us_max(); }},
                             {{"nothing_evictable", "Found nothing", Kind::kCount},
                              [](const Policy& p) -> Value { return p.nothing_evictable(); }}});
    return list;
  }();
  return fields;
}

const std::vector<Field<v1::PolicyRow>>& row_fields() {
  using Row = v1::PolicyRow;
  static const std::vector<Field<Row>> fields = {
      {{"pool", "POOL", Kind::kId}, [](const Row& r) -> Value { return r.pool(); }},
      {{"pool_name", "POOL-NAME"}, [](const Row& r) -> Value { return r.pool_name(); }},
      {{"namespace", "NAMESPACE"},
       [](const Row& r) { return r.namespace_id() == 0 ? Value{} : Value{r.namespace_name()}; }},
      {{"policy", "POLICY", Kind::kWord}, [](const Row& r) -> Value { return r.policy(); }},
      {{"held_replicas", "HELD", Kind::kCount},
       [](const Row& r) -> Value { return r.held_replicas(); }},
      {{"memory_bytes", "MEMORY", Kind::kBytes},
       [](const Row& r) -> Value { return r.memory_bytes(); }},
      {{"setting", "SETTING"}, [](const Row& r) -> Value { return r.state(); }},
  };
  return fields;
}

Answer<Outcome> get_policy(AdminClient& client, const Arguments&) {
  auto answer = client.call(v1::GetPolicyRequest{});
  if (!answer) return fail(std::move(answer.error()));
  Outcome outcome;
  outcome.view.sections = {
      record_section("policy", policy_fields(), *answer),
      section_of(SectionText{"pools", "No pool holds anything yet."}, row_fields(), answer->rows()),
  };
  return outcome;
}

Answer<v1::SetPolicyRequest> set_request(const Arguments& arguments) {
  v1::SetPolicyRequest request;
  const bool sets = arguments.has("--policy") || arguments.has("--high") || arguments.has("--low");
  if (sets == arguments.has("--reset"))
    return fail_usage("say what to set: --policy, --high, --low or several of them; or --reset");
  if (arguments.has("--reset")) {
    request.set_reset(true);
    return request;
  }
  v1::EvictionPolicy& policy = *request.mutable_policy();
  policy.set_policy(arguments.text("--policy"));
  for (const std::string name : {"--high", "--low"}) {
    if (!arguments.has(name)) continue;
    const auto permille = parse_permille(name, arguments.text(name));
    if (!permille) return fail(permille.error());
    if (*permille == 0) return fail_usage(name + " = 0: accepted: more than 0 percent");
    name == "--high" ? policy.set_high_permille(*permille) : policy.set_low_permille(*permille);
  }
  return request;
}

Answer<Outcome> set_policy(AdminClient& client, const Arguments& arguments) {
  auto request = set_request(arguments);
  if (!request) return fail(std::move(request.error()));
  auto answer = client.call(*request);
  if (!answer) return fail(std::move(answer.error()));
  std::vector<Field<v1::SetPolicyResponse>> fields;
  append_setting_fields<v1::SetPolicyResponse>(
      fields,
      [](const v1::SetPolicyResponse& r) -> const v1::EvictionPolicy& { return r.policy(); });
  return Outcome{.view = view_of(record_section("policy", fields, *answer))};
}

Command get_command() {
  return {.name = "get",
          .summary = "The policy in force, and what it did",
          .details =
              "One row below for each pool, and one more for each namespace with a quota. Memory "
              "counts all\n"
              "policies with the table that they share; figures are of the latest second.",
          .example = "berthctl policy get\nberthctl policy get --json",
          .positionals = {},
          .options = {},
          .produce = get_policy};
}

Command set_command() {
  return {.name = "set",
          .summary = "Choose the policy and the watermarks of all pools",
          .details =
              "What is not named stays as it is. In force from now on and after a restart, until "
              "--reset goes\n"
              "back to the configuration. What the old policy knows of age is handed over.",
          .example =
              "berthctl policy set --policy lru\nberthctl policy set --high 85 --low 70\n"
              "berthctl policy set --reset",
          .positionals = {},
          .options = {{"--policy",
                       "POLICY",
                       "What chooses who leaves",
                       {"adaptive", "lru", "s3fifo", "lfu_da"}},
                      {"--high", "PERCENT", "Make room above this share of a pool's budget"},
                      {"--low", "PERCENT", "and stop below this one"},
                      {"--reset", "", "Back to the configuration"}},
          .kind = CommandKind::kAction,
          .produce = set_policy,
          .timeout = seconds(30)};
}

}  // namespace

Command policy_command() {
  return {
      .name = "policy",
      .summary = "How pools make room: show it, change it",
      .details = "Without a subcommand: as `policy get`.",
      .example = "berthctl policy get\nberthctl policy set --policy adaptive --high 90 --low 80",
      .positionals = {},
      .options = {},
      .produce = get_policy,
      .subcommands = {get_command(), set_command()}};
}

}  // namespace berth::ctl
