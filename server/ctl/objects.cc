#include "common/text.h"
#include "server/ctl/lease_fields.h"
#include "server/ctl/list_options.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

// A cache holds millions; whoever wants them all says so.
constexpr uint64_t kObjectsDefault = 100;

constexpr v1::ReplicaState kStates[] = {v1::REPLICA_STATE_RESERVED, v1::REPLICA_STATE_READY,
                                        v1::REPLICA_STATE_RETIRING, v1::REPLICA_STATE_QUARANTINED};

Value state_word(v1::ReplicaState state) {
  return word_of(v1::ReplicaState_Name(state), "REPLICA_STATE_", state);
}

const std::vector<Field<v1::ReplicaRow>>& replica_fields() {
  using Replica = v1::ReplicaRow;
  static const std::vector<Field<Replica>> fields = {
      {{"replica", "REPLICA", Kind::kId}, [](const Replica& r) -> Value { return r.replica(); }},
      {{"namespace", "NAMESPACE"}, [](const Replica& r) -> Value { return r.namespace_name(); }},
      {{"namespace_id", "NAMESPACE-ID", Kind::kId, Shown::kDataOnly},
       [](const Replica& r) -> Value { return r.namespace_id(); }},
      {{"digest", "DIGEST", Kind::kHex}, [](const Replica& r) -> Value { return r.digest(); }},
      {{"shard", "SHARD", Kind::kCount},
       [](const Replica& r) -> Value { return uint64_t{r.shard()}; }},
      {{"part", "PART", Kind::kCount},
       [](const Replica& r) -> Value { return uint64_t{r.part()}; }},
      {{"pool", "POOL", Kind::kId}, [](const Replica& r) -> Value { return r.pool(); }},
      {{"pool_name", "POOL-NAME"}, [](const Replica& r) -> Value { return r.pool_name(); }},
      {{"state", "STATE", Kind::kWord}, [](const Replica& r) { return state_word(r.state()); }},
      {{"readable", "READABLE", Kind::kFlag},
       [](const Replica& r) -> Value { return r.readable(); }},
      {{"size_bytes", "SIZE", Kind::kBytes},
       [](const Replica& r) -> Value { return r.size_bytes(); }},
      {{"offset_bytes", "OFFSET", Kind::kBytes, Shown::kDataOnly},
       [](const Replica& r) -> Value { return r.offset(); }},
      {{"leases", "LEASES", Kind::kCount},
       [](const Replica& r) -> Value { return uint64_t{r.leases()}; }},
      {{"reason", "REASON"}, [](const Replica& r) -> Value { return r.reason(); }},
  };
  return fields;
}

v1::ReplicaState state_of(std::string_view word) {
  for (const v1::ReplicaState state : kStates)
    if (std::get<std::string>(state_word(state)) == word) return state;
  return v1::REPLICA_STATE_UNSPECIFIED;
}

Answer<v1::ListObjectsRequest> filters_of(const Arguments& arguments) {
  const auto pool = arguments.id("--pool");
  if (!pool) return fail(pool.error());
  auto prefix = arguments.hex("--digest-prefix");
  if (!prefix) return fail(std::move(prefix.error()));
  v1::ListObjectsRequest request;
  request.set_namespace_name(arguments.text("--namespace"));
  request.set_pool(*pool);
  request.set_state(state_of(arguments.text("--state")));
  request.set_digest_prefix(std::move(*prefix));
  return request;
}

Answer<Outcome> produce_objects(AdminClient& client, const Arguments& arguments) {
  auto request = filters_of(arguments);
  if (!request) return fail(std::move(request.error()));
  const auto limit = arguments.count("--limit", kObjectsDefault);
  if (!limit) return fail(limit.error());
  auto listed = fetch_pages<v1::ReplicaRow>(
      client, std::move(*request), *limit,
      [](auto& response) { return response.mutable_replicas(); },
      [](const v1::ListObjectsResponse& response, const auto&) { return response.next_after(); });
  if (!listed) return fail(std::move(listed.error()));
  return list_outcome<v1::ReplicaRow>(*listed,
                                      {{"objects", "No replicas match."}, replica_fields()});
}

Answer<v1::InspectObjectRequest> inspect_request(const Arguments& arguments) {
  const bool by_replica = arguments.has("REPLICA");
  const bool by_key = arguments.has("--namespace") && arguments.has("--digest");
  const bool half_a_key = arguments.has("--namespace") != arguments.has("--digest");
  if (by_replica == by_key || half_a_key)
    return fail_usage("name one object: either REPLICA, or --namespace NAME with --digest HEX");
  const auto replica = arguments.id("REPLICA");
  if (!replica) return fail(replica.error());
  auto digest = arguments.hex("--digest");
  if (!digest) return fail(std::move(digest.error()));
  v1::InspectObjectRequest request;
  request.set_replica(*replica);
  request.set_namespace_name(arguments.text("--namespace"));
  request.set_digest(std::move(*digest));
  return request;
}

Answer<Outcome> inspect_object(AdminClient& client, const Arguments& arguments) {
  auto request = inspect_request(arguments);
  if (!request) return fail(std::move(request.error()));
  auto answer = client.call(*request);
  if (!answer) return fail(std::move(answer.error()));
  Outcome outcome;
  outcome.view.sections = {
      section_of(SectionText{"replicas", "No replica of it is known."}, replica_fields(),
                 answer->replicas()),
      section_of(SectionText{"leases"}, lease_fields(), answer->leases()),
      section_of(SectionText{"reservations"}, reservation_fields(), answer->reservations()),
  };
  return outcome;
}

Command inspect_command() {
  return {
      .name = "inspect",
      .summary = "Every replica of one object, its leases and reservations",
      .details = "",
      .example =
          "berthctl objects inspect e3-17\n"
          "berthctl objects inspect --namespace chat-8b --digest 00112233445566778899aabbccddeeff",
      .positionals = {{"REPLICA", "A replica id, e.g. e3-17", Arity::kOptional}},
      .options = {{"--namespace", "NAME", "Together with --digest: the object's key"},
                  {"--digest", "HEX", "The whole prefix digest, 16 to 32 bytes in hex"}},
      .produce = inspect_object};
}

}  // namespace

Command objects_command() {
  return {
      .name = "objects",
      .summary = "Replicas of KV objects, with filters",
      .details = "One row for each replica. REASON says why one retires or is quarantined.",
      .example =
          "berthctl objects --namespace chat-8b --state ready --limit 20\n"
          "berthctl objects --digest-prefix 00ff --json\n"
          "berthctl objects inspect e3-17",
      .positionals = {},
      .options = {{"--namespace", "NAME", "Only of this namespace"},
                  {"--pool", "ID", "Only in this pool, e.g. e3-2 (`berthctl pools` lists them)"},
                  {"--state",
                   "STATE",
                   "Only in this state",
                   {"reserved", "ready", "retiring", "quarantined"}},
                  {"--digest-prefix", "HEX", "Only digests that begin so, e.g. 00ff"},
                  {"--limit", "N", "Rows at most; 0: all (default 100)"}},
      .produce = produce_objects,
      .subcommands = {inspect_command()}};
}

}  // namespace berth::ctl
