#include "server/ctl/lease_fields.h"
#include "server/ctl/list_options.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

Answer<Outcome> produce_leases(AdminClient& client, const Arguments& arguments) {
  const auto session = arguments.id("--session");
  if (!session) return fail(session.error());
  v1::ListLeasesRequest request;
  request.set_session(*session);
  return produce_list<v1::LeaseRow>(
      client, std::move(request), arguments,
      {{"leases", "No leases: nothing is being read."}, lease_fields()},
      [](auto& response) { return response.mutable_leases(); },
      [](const v1::LeaseRow& row) { return row.lease(); });
}

Answer<Outcome> produce_reservations(AdminClient& client, const Arguments& arguments) {
  return produce_list<v1::ReservationRow>(
      client, v1::ListReservationsRequest{}, arguments,
      {{"reservations", "No reservations: nothing is being written."}, reservation_fields()},
      [](auto& response) { return response.mutable_reservations(); },
      [](const v1::ReservationRow& row) { return row.first_replica(); });
}

}  // namespace

const std::vector<Field<v1::LeaseRow>>& lease_fields() {
  using Lease = v1::LeaseRow;
  static const std::vector<Field<Lease>> fields = {
      {{"lease", "LEASE", Kind::kId}, [](const Lease& l) -> Value { return l.lease(); }},
      {{"session", "SESSION", Kind::kId}, [](const Lease& l) -> Value { return l.session(); }},
      {{"engine", "ENGINE"}, [](const Lease& l) -> Value { return l.engine_id(); }},
      {{"operation", "OPERATION", Kind::kCount},
       [](const Lease& l) -> Value { return l.operation(); }},
      {{"replicas", "REPLICAS", Kind::kCount},
       [](const Lease& l) -> Value { return l.replicas(); }},
      {{"age_ms", "AGE", Kind::kMillis}, [](const Lease& l) -> Value { return l.age_ms(); }},
      {{"expires_in_ms", "EXPIRES-IN", Kind::kMillis},
       [](const Lease& l) -> Value { return l.expires_in_ms(); }},
      {{"revoking", "REVOKING", Kind::kFlag}, [](const Lease& l) -> Value { return l.revoking(); }},
  };
  return fields;
}

const std::vector<Field<v1::ReservationRow>>& reservation_fields() {
  using Reservation = v1::ReservationRow;
  static const std::vector<Field<Reservation>> fields = {
      {{"first_replica", "RESERVATION", Kind::kId},
       [](const Reservation& r) -> Value { return r.first_replica(); }},
      {{"session", "SESSION", Kind::kId},
       [](const Reservation& r) -> Value { return r.session(); }},
      {{"engine", "ENGINE"}, [](const Reservation& r) -> Value { return r.engine_id(); }},
      {{"operation", "OPERATION", Kind::kCount},
       [](const Reservation& r) -> Value { return r.operation(); }},
      {{"open_items", "ITEMS", Kind::kCount},
       [](const Reservation& r) -> Value { return r.open_items(); }},
      {{"open_bytes", "BYTES", Kind::kBytes},
       [](const Reservation& r) -> Value { return r.open_bytes(); }},
      {{"due_in_ms", "DUE-IN", Kind::kMillis},
       [](const Reservation& r) -> Value { return r.due_in_ms(); }},
      {{"quarantined", "QUARANTINED", Kind::kFlag},
       [](const Reservation& r) -> Value { return r.quarantined(); }},
  };
  return fields;
}

Command leases_command() {
  return {.name = "leases",
          .summary = "Read protection that engines hold",
          .details =
              "A negative EXPIRES-IN is overdue: the holder was asked to stop and keeps its "
              "replicas until it\n"
              "says so or is proven dead.",
          .example = "berthctl leases\nberthctl leases --session e3-17",
          .positionals = {},
          .options = {{"--session", "ID", "Only those of this session, e.g. e3-17"}, kLimitOption},
          .produce = produce_leases};
}

Command reservations_command() {
  return {.name = "reservations",
          .summary = "Writes in flight, and those that are overdue",
          .details =
              "A quarantined reservation is overdue: its writer was asked to stop, and its room "
              "stays charged\n"
              "until the writer says so or is proven dead.",
          .example = "berthctl reservations",
          .positionals = {},
          .options = {kLimitOption},
          .produce = produce_reservations};
}

}  // namespace berth::ctl
