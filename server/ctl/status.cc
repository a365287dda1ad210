#include "server/ctl/status.h"

#include "server/ctl/fields.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

using Status = v1::GetStatusResponse;

Value health_word(const Status& s) {
  return word_of(v1::Health_Name(s.health()), "HEALTH_", s.health());
}

const std::vector<Field<Status>>& status_fields() {
  static const std::vector<Field<Status>> fields = {
      {{"health", "Health", Kind::kWord}, health_word},
      {{"health_reason", "Reason", Kind::kText},
       [](const Status& s) -> Value { return s.health_reason(); }},
      {{"version", "Version", Kind::kText}, [](const Status& s) -> Value { return s.version(); }},
      {{"store_id", "Store", Kind::kHex},
       [](const Status& s) -> Value { return s.store().store_id(); }},
      {{"epoch", "Epoch", Kind::kCount},
       [](const Status& s) -> Value { return uint64_t{s.store().epoch()}; }},
      {{"started_unix_ms", "Started", Kind::kUnixMillis},
       [](const Status& s) -> Value { return s.started_unix_ms(); }},
      {{"uptime_ms", "Up for", Kind::kMillis},
       [](const Status& s) -> Value { return s.uptime_ms(); }},
      {{"stall_ms", "Stalled for", Kind::kMillis},
       [](const Status& s) -> Value { return s.stall_ms(); }},
      {{"durability", "Durability", Kind::kText},
       [](const Status& s) -> Value { return s.durability(); }},
      {{"state_directory", "State directory", Kind::kText},
       [](const Status& s) -> Value { return s.state_directory(); }},
      {{"resident_bytes", "Resident memory", Kind::kBytes},
       [](const Status& s) -> Value { return s.resident_bytes(); }},
      {{"workers_attached", "Workers attached", Kind::kCount},
       [](const Status& s) -> Value { return s.workers_attached(); }},
      {{"workers_known", "Workers known", Kind::kCount},
       [](const Status& s) -> Value { return s.workers_known(); }},
      {{"clients", "Clients", Kind::kCount}, [](const Status& s) -> Value { return s.clients(); }},
      {{"sessions", "Sessions", Kind::kCount},
       [](const Status& s) -> Value { return s.sessions(); }},
      {{"pools", "Pools", Kind::kCount}, [](const Status& s) -> Value { return s.pools(); }},
      {{"namespaces", "Namespaces", Kind::kCount},
       [](const Status& s) -> Value { return s.namespaces(); }},
      {{"objects", "Objects", Kind::kCount}, [](const Status& s) -> Value { return s.objects(); }},
      {{"replicas", "Replicas", Kind::kCount},
       [](const Status& s) -> Value { return s.replicas(); }},
      {{"leases", "Leases", Kind::kCount}, [](const Status& s) -> Value { return s.leases(); }},
      {{"reservations", "Reservations", Kind::kCount},
       [](const Status& s) -> Value { return s.reservations(); }},
      {{"quarantined_bytes", "Quarantined", Kind::kBytes, Shown::kEverywhere, true},
       [](const Status& s) -> Value { return s.quarantined_bytes(); }},
      {{"jobs", "Jobs", Kind::kCount}, [](const Status& s) -> Value { return s.jobs(); }},
      {{"queue_commands", "Queued commands", Kind::kCount},
       [](const Status& s) -> Value { return s.queue_commands(); }},
      {{"queue_commands_max", "Queue bound", Kind::kCount},
       [](const Status& s) -> Value { return s.queue_commands_max(); }},
      {{"event_sequence", "Newest event", Kind::kCount},
       [](const Status& s) -> Value { return s.event_sequence(); }},
  };
  return fields;
}

Answer<Outcome> produce_status(AdminClient& client, const Arguments&) {
  auto status = client.call(v1::GetStatusRequest{});
  if (!status) return fail(std::move(status.error()));
  Outcome outcome{.view = view_of(record_section("status", status_fields(), *status))};
  if (status->health() != v1::HEALTH_SERVING) outcome.exit_code = ExitCode::kNotReady;
  return outcome;
}

}  // namespace

std::string health_sentence(const AdminClient& client, const Status& status) {
  const Value word = health_word(status);
  const auto* text = std::get_if<std::string>(&word);
  std::string sentence =
      "server " + client.address() + " is " + (text ? *text : std::string("in an unknown state"));
  if (!status.health_reason().empty()) sentence += ": " + status.health_reason();
  return sentence;
}

Command status_command() {
  return {
      .name = "status",
      .summary = "Health, identity and totals of the server",
      .details =
          "Exits with 4 while the server is anything but serving, so that scripts can wait for it.",
      .example = "berthctl status\nberthctl status --json | jq .health",
      .positionals = {},
      .options = {},
      .produce = produce_status};
}

}  // namespace berth::ctl
