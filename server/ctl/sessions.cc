#include "server/ctl/list_options.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

const std::vector<Field<v1::SessionRow>>& session_fields() {
  using Session = v1::SessionRow;
  static const std::vector<Field<Session>> fields = {
      {{"session", "SESSION", Kind::kId}, [](const Session& s) -> Value { return s.session(); }},
      {{"role", "ROLE", Kind::kWord},
       [](const Session& s) { return word_of(v1::Role_Name(s.role()), "ROLE_", s.role()); }},
      {{"name", "NAME"}, [](const Session& s) -> Value { return s.name(); }},
      {{"state", "STATE", Kind::kWord},
       [](const Session& s) {
         return word_of(v1::SessionState_Name(s.state()), "SESSION_STATE_", s.state());
       }},
      {{"node", "NODE"}, [](const Session& s) -> Value { return s.node(); }},
      {{"worker", "WORKER"}, [](const Session& s) -> Value { return s.worker_name(); }},
      {{"worker_session", "WORKER-SESSION", Kind::kId, Shown::kDataOnly},
       [](const Session& s) -> Value { return s.worker(); }},
      {{"heartbeat_age_ms", "HEARTBEAT", Kind::kMillis},
       [](const Session& s) {
         return s.heartbeat_age_ms() < 0 ? Value{} : Value{s.heartbeat_age_ms()};
       }},
      {{"incarnation", "INCARNATION", Kind::kCount},
       [](const Session& s) -> Value { return uint64_t{s.incarnation()}; }},
      {{"pools", "POOLS", Kind::kCount}, [](const Session& s) -> Value { return s.pools(); }},
      {{"leases", "LEASES", Kind::kCount}, [](const Session& s) -> Value { return s.leases(); }},
      {{"reservations", "RESERVATIONS", Kind::kCount},
       [](const Session& s) -> Value { return s.reservations(); }},
      {{"operations", "OPERATIONS", Kind::kCount},
       [](const Session& s) -> Value { return s.operations(); }},
      {{"version", "PROTOCOL", Kind::kCount},
       [](const Session& s) -> Value { return uint64_t{s.version()}; }},
  };
  return fields;
}

Answer<Outcome> produce_sessions(AdminClient& client, const Arguments& arguments) {
  return produce_list<v1::SessionRow>(
      client, v1::ListSessionsRequest{}, arguments,
      {{"sessions", "No sessions: no worker or engine has attached."}, session_fields()},
      [](auto& response) { return response.mutable_sessions(); },
      [](const v1::SessionRow& row) { return row.session(); });
}

}  // namespace

Command sessions_command() {
  return {
      .name = "sessions",
      .summary = "Attached workers and the engines that joined them",
      .details =
          "NAME is the worker's name or the engine id; WORKER is what an engine is attached "
          "through.\n"
          "HEARTBEAT is the age of the last one; \"-\" for engines, and where none was seen yet.",
      .example = "berthctl sessions\nberthctl sessions -w 1",
      .positionals = {},
      .options = {kLimitOption},
      .produce = produce_sessions};
}

}  // namespace berth::ctl
