// Why a chunk is a hit or a miss for somebody.
#include "server/ctl/chunk_names.h"
#include "server/ctl/name_lookup.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

Value miss_word(v1::MissReason reason) {
  return word_of(v1::MissReason_Name(reason), "MISS_REASON_", reason);
}

struct Verdict {
  v1::SessionRow requester;
  v1::ExplainResponse answer;
};

const std::vector<Field<Verdict>>& verdict_fields() {
  static const std::vector<Field<Verdict>> fields = {
      {{"hit", "Hit", Kind::kFlag}, [](const Verdict& v) -> Value { return v.answer.hit(); }},
      {{"miss_reason", "Because", Kind::kWord},
       [](const Verdict& v) { return miss_word(v.answer.miss_reason()); }},
      {{"requester", "Requester"}, [](const Verdict& v) -> Value { return v.requester.name(); }},
      {{"session", "Session", Kind::kId},
       [](const Verdict& v) -> Value { return v.requester.session(); }},
  };
  return fields;
}

const std::vector<Field<v1::ExplainedReplica>>& copy_fields() {
  using Copy = v1::ExplainedReplica;
  static const std::vector<Field<Copy>> fields = {
      {{"replica", "REPLICA", Kind::kId},
       [](const Copy& c) -> Value { return c.replica().replica(); }},
      {{"shard", "SHARD", Kind::kCount},
       [](const Copy& c) -> Value { return uint64_t{c.replica().shard()}; }},
      {{"part", "PART", Kind::kCount},
       [](const Copy& c) -> Value { return uint64_t{c.replica().part()}; }},
      {{"pool", "POOL", Kind::kId}, [](const Copy& c) -> Value { return c.replica().pool(); }},
      {{"pool_name", "POOL-NAME"}, [](const Copy& c) -> Value { return c.replica().pool_name(); }},
      {{"state", "STATE", Kind::kWord},
       [](const Copy& c) {
         const v1::ReplicaState state = c.replica().state();
         return word_of(v1::ReplicaState_Name(state), "REPLICA_STATE_", state);
       }},
      {{"leases", "LEASES", Kind::kCount},
       [](const Copy& c) -> Value { return uint64_t{c.replica().leases()}; }},
      {{"obstacle", "OBSTACLE", Kind::kWord},
       [](const Copy& c) { return miss_word(c.obstacle()); }},
      {{"advice", "WHY"}, [](const Copy& c) -> Value { return c.advice(); }},
  };
  return fields;
}

const std::vector<Field<v1::RetiredCopy>>& retired_fields() {
  using Copy = v1::RetiredCopy;
  static const std::vector<Field<Copy>> fields = {
      {{"replica", "REPLICA", Kind::kId}, [](const Copy& c) -> Value { return c.replica(); }},
      {{"shard", "SHARD", Kind::kCount},
       [](const Copy& c) -> Value { return uint64_t{c.shard()}; }},
      {{"part", "PART", Kind::kCount}, [](const Copy& c) -> Value { return uint64_t{c.part()}; }},
      {{"pool", "POOL", Kind::kId}, [](const Copy& c) -> Value { return c.pool(); }},
      {{"pool_name", "POOL-NAME"},
       [](const Copy& c) { return c.pool_name().empty() ? Value{} : Value{c.pool_name()}; }},
      {{"reason", "REASON", Kind::kWord}, [](const Copy& c) -> Value { return c.reason(); }},
      {{"age_ms", "AGO", Kind::kMillis}, [](const Copy& c) -> Value { return c.age_ms(); }},
  };
  return fields;
}

Answer<Outcome> explain(AdminClient& client, const Arguments& arguments) {
  if (arguments.text("--for").empty())
    return fail_usage("--for SESSION is required: whether a chunk is a hit depends on who reads");
  auto chunks =
      read_chunks(client, arguments.text("NAMESPACE"), "DIGEST", {arguments.text("DIGEST")});
  if (!chunks) return fail(std::move(chunks.error()));
  auto requester = find_session(client, "--for", arguments.text("--for"));
  if (!requester) return fail(std::move(requester.error()));
  v1::ExplainRequest request;
  request.set_namespace_name(chunks->namespace_name);
  request.set_digest(chunks->digests.front());
  request.set_session(requester->session());
  auto answer = client.call(request);
  if (!answer) return fail(std::move(answer.error()));
  const Verdict verdict{std::move(*requester), std::move(*answer)};
  Outcome outcome;
  outcome.view.sections = {
      record_section("verdict", verdict_fields(), verdict),
      section_of(SectionText{"replicas", "The server knows no copy of it."}, copy_fields(),
                 verdict.answer.replicas()),
      section_of(SectionText{"retired", "No copy of it left lately, as far as is remembered."},
                 retired_fields(), verdict.answer.retired()),
  };
  return outcome;
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .summary = "Why a chunk is a hit or a miss for a requester",
          .details =
              "One row for each copy, with what stands in its way for this requester; below, the "
              "copies that\n"
              "left lately and why, newest first. The server remembers the last "
              "`retired_history_max` of all\n"
              "chunks, since its start. Exits with 0 for a hit and for a miss.",
          .example =
              "berthctl explain chat-8b 00112233445566778899aabbccddeeff --for engine-0\n"
              "berthctl explain chat-8b 00112233445566778899aabbccddeeff --for e3-17 --json",
          .positionals = {{"NAMESPACE", "The namespace of the chunk"},
                          {"DIGEST", "Its whole prefix digest in hex"}},
          .options = {{"--for", "SESSION",
                       "Required: who would read; a session's id, or the name of a worker or "
                       "engine"}},
          .produce = explain};
}

}  // namespace berth::ctl
