// Explain: what the directory says of a chunk's copies, and what is remembered of those that left.
#include "server/directory/explain.h"

#include "common/names.h"
#include "common/text.h"
#include "server/directory/readers.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/fields.h"
#include "server/rpc/rows.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/views.h"

namespace berth::rpc {
namespace {

// Of those that left, the newest so many are told.
constexpr size_t kRetiredCopiesMax = 1000;

struct Question {
  const Namespace* ns = nullptr;
  Digest digest;
  Reader reader;
};

Result<Question> question_of(const v1::ExplainRequest& request, const Directory& directory) {
  Fields fields;
  const std::string name = fields.name("namespace_name", request.namespace_name(), Given::kRequired,
                                       kNamespaceNameLengthMax);
  const auto session = fields.id<SessionId>("session", request.session());
  Question question;
  if (fields.failed()) return fields.checked(question);
  const auto ns = namespace_named(directory, name);
  if (!ns) return tl::unexpected(ns.error());
  question.ns = *ns;
  const auto digests = fields.digests("digest", request.digest(), (*ns)->spec.digest_bytes, 1);
  if (fields.failed()) return fields.checked(question);
  question.digest = digests[0];
  const auto reader = reader_of(directory, session);
  if (!reader) return tl::unexpected(reader.error());
  question.reader = *reader;
  return question;
}

void fill(v1::ExplainResponse* response, const Explanation& explanation,
          const ViewContext& context) {
  response->set_hit(explanation.is_hit);
  response->set_miss_reason(static_cast<v1::MissReason>(explanation.miss));
  for (const ExplainedCopy& copy : explanation.copies) {
    v1::ExplainedReplica& row = *response->add_replicas();
    *row.mutable_replica() = replica_row(context, context.directory.replicas().at(copy.slot));
    row.set_obstacle(static_cast<v1::MissReason>(copy.obstacle));
    row.set_advice(copy.advice);
  }
}

void fill(v1::RetiredCopy* row, const RetiredCopy& copy, const ViewContext& context) {
  row->set_replica(copy.replica.value());
  row->set_pool(copy.pool.value());
  if (const auto* pool = context.directory.find<Pool>(copy.pool))
    row->set_pool_name(pool->spec.name);
  row->set_shard(copy.key.shard);
  row->set_part(copy.key.part);
  row->set_reason(copy.why == Why::kNone ? "dropped" : std::string(name_of(copy.why)));
  row->set_age_ms(static_cast<uint64_t>((context.now - copy.when).millis));
}

}  // namespace

AdminService::Unary* AdminService::Explain(Context* call, const v1::ExplainRequest* request,
                                           v1::ExplainResponse* response) {
  NamespaceId ns;
  Digest digest;
  const auto explained = [&]() -> Result<> {
    const auto view = backend_.sequencer.view();
    const auto question = question_of(*request, *view);
    if (!question) return tl::unexpected(question.error());
    ns = question->ns->id;
    digest = question->digest;
    fill(response, explain(*view, *question->ns, digest, question->reader), context(view));
    return {};
  }();
  if (!explained) return finished(call, explained);
  // An engine that cannot acquire must recompute: the same answer as Probe's.
  if (backend_.sequencer.is_degraded()) {
    response->set_hit(false);
    response->set_miss_reason(v1::MISS_REASON_STORE_DEGRADED);
  }
  // All of the history is searched, so the writer is not kept waiting meanwhile.
  const auto left = backend_.sequencer.retired().of_chunk(ns, digest, kRetiredCopiesMax);
  {
    const auto view = backend_.sequencer.view();
    const ViewContext now = context(view);
    for (const RetiredCopy& copy : left) fill(response->add_retired(), copy, now);
  }
  return finished(call, explained);
}

}  // namespace berth::rpc
