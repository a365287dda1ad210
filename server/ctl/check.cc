#include "server/ctl/fields.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

const std::vector<Field<v1::CheckResponse>>& check_fields() {
  using Check = v1::CheckResponse;
  static const std::vector<Field<Check>> fields = {
      {{"ok", "Every invariant holds", Kind::kFlag},
       [](const Check& c) -> Value { return c.broken().empty(); }},
      {{"broken", "Broken", Kind::kText, Shown::kEverywhere, true},
       [](const Check& c) { return c.broken().empty() ? Value{} : Value{c.broken()}; }},
      {{"replicas_checked", "Replicas checked", Kind::kCount},
       [](const Check& c) -> Value { return c.replicas_checked(); }},
      {{"duration_us", "Microseconds", Kind::kCount},
       [](const Check& c) -> Value { return c.duration_us(); }},
  };
  return fields;
}

Answer<Outcome> produce_check(AdminClient& client, const Arguments&) {
  auto answer = client.call(v1::CheckRequest{});
  if (!answer) return fail(std::move(answer.error()));
  Outcome outcome{.view = view_of(record_section("check", check_fields(), *answer))};
  if (!answer->broken().empty()) {
    outcome.exit_code = ExitCode::kRefused;
    outcome.notes.push_back(
        "an invariant is broken: a bug in Berth; report it with the server's log");
  }
  return outcome;
}

}  // namespace

Command check_command() {
  return {
      .name = "check",
      .summary = "Run every invariant over the server's state",
      .details =
          "Takes a pause of the server of about a second per million replicas. Exits with 1 when\n"
          "something is broken.",
      .example = "berthctl check",
      .positionals = {},
      .options = {},
      .kind = CommandKind::kAction,
      .produce = produce_check,
      .timeout = seconds(300)};
}

}  // namespace berth::ctl
