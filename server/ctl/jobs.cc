#include "server/ctl/fields.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

const std::vector<Field<v1::JobRow>>& job_fields() {
  using Job = v1::JobRow;
  static const std::vector<Field<Job>> fields = {
      {{"job", "JOB", Kind::kId}, [](const Job& j) -> Value { return j.job(); }},
      {{"kind", "KIND", Kind::kWord}, [](const Job& j) -> Value { return j.kind(); }},
      {{"pool", "POOL", Kind::kId}, [](const Job& j) -> Value { return j.pool(); }},
      {{"session", "SESSION", Kind::kId}, [](const Job& j) -> Value { return j.session(); }},
      {{"namespace_id", "NAMESPACE", Kind::kId},
       [](const Job& j) -> Value { return j.namespace_id(); }},
      {{"done", "DONE", Kind::kCount}, [](const Job& j) -> Value { return j.done(); }},
      {{"left", "LEFT", Kind::kCount}, [](const Job& j) -> Value { return j.left(); }},
  };
  return fields;
}

Answer<Outcome> produce_jobs(AdminClient& client, const Arguments&) {
  auto answer = client.call(v1::ListJobsRequest{});
  if (!answer) return fail(std::move(answer.error()));
  const SectionText text{"jobs", "No jobs: the server has no long work in hand."};
  return Outcome{.view = view_of(section_of(text, job_fields(), answer->jobs()))};
}

}  // namespace

Command jobs_command() {
  return {.name = "jobs",
          .summary = "Long work of the server: fences, drains, closes, mass evictions",
          .details =
              "KIND: end_session, drop_pool, close_pool, drain_pool, evict_namespace, trim_pool. "
              "LEFT is at most\n"
              "so many replicas; of a session: what it still holds.",
          .example = "berthctl jobs -w 1",
          .positionals = {},
          .options = {},
          .produce = produce_jobs};
}

}  // namespace berth::ctl
