// Eviction policies as an operator sees and sets them.
#include "common/text.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/fields.h"
#include "server/rpc/unary_call.h"

namespace berth::rpc {
namespace {

constexpr uint32_t kPermilleMax = 1000;

// What is not given keeps what is in force when the command is decided, not now: two operators who
// set different things at once both get theirs.
Result<Command> set_policy_command(const v1::SetPolicyRequest& request) {
  const v1::EvictionPolicy& given = request.policy();
  const bool names_something =
      !given.policy().empty() || given.high_permille() != 0 || given.low_permille() != 0;
  Fields fields;
  SetEviction command;
  command.reset = request.reset();
  command.keep_kind = given.policy().empty();
  if (names_something == request.reset())
    fields.refuse("policy", request.reset() ? "given beside reset" : "empty",
                  request.reset() ? "contradicts it" : "sets nothing",
                  "a policy, a watermark or both; or reset alone");
  if (!command.keep_kind) {
    const auto kind = policy::parse_eviction_kind(given.policy());
    if (kind)
      command.setting.kind = *kind;
    else
      fields.refuse("policy.policy", quote(given.policy()), "is no policy",
                    "adaptive, lru, s3fifo or lfu_da");
  }
  command.setting.high_permille =
      fields.number32("policy.high_permille", given.high_permille(), 0, kPermilleMax);
  command.setting.low_permille =
      fields.number32("policy.low_permille", given.low_permille(), 0, kPermilleMax - 1);
  return fields.checked(Command(command));
}

void fill(v1::EvictionPolicy* wire, const EvictionSetting& setting) {
  wire->set_policy(std::string(policy::name_of(setting.kind)));
  wire->set_high_permille(setting.high_permille);
  wire->set_low_permille(setting.low_permille);
}

void fill(v1::PolicyRow* wire, const policy::PolicyRow& row, const Directory& directory) {
  wire->set_pool(row.pool.value());
  if (const auto* pool = directory.find<Pool>(row.pool)) wire->set_pool_name(pool->spec.name);
  wire->set_namespace_id(row.namespace_id.value());
  if (const auto* ns = directory.find<Namespace>(row.namespace_id))
    wire->set_namespace_name(ns->spec.name);
  wire->set_policy(std::string(policy::name_of(row.kind)));
  wire->set_held_replicas(row.held);
  wire->set_memory_bytes(row.memory_bytes);
  wire->set_state(row.describe);
}

}  // namespace

AdminService::Unary* AdminService::GetPolicy(Context* call, const v1::GetPolicyRequest*,
                                             v1::GetPolicyResponse* response) {
  const SequencerStats stats = backend_.sequencer.stats();
  const std::vector<policy::PolicyRow> rows = backend_.sequencer.policies();
  response->set_memory_bytes(stats.eviction_memory_bytes);
  response->set_slices(stats.eviction.slices);
  response->set_evicted_replicas(stats.eviction.evicted_replicas);
  response->set_slice_replicas_max(stats.eviction.slice_replicas_max);
  response->set_slice_us_max(stats.eviction_slice_micros_max);
  response->set_nothing_evictable(stats.eviction.nothing_evictable);
  {
    const auto view = backend_.sequencer.view();
    fill(response->mutable_policy(),
         eviction_in_force(*view, backend_.sequencer.config().directory));
    response->set_from_configuration(!view->find<EvictionSetting>({}));
    for (const policy::PolicyRow& row : rows) fill(response->add_rows(), row, *view);
  }
  return finished(call, {});
}

AdminService::Unary* AdminService::SetPolicy(Context* call, const v1::SetPolicyRequest* request,
                                             v1::SetPolicyResponse* response) {
  return submitted(backend_, call, set_policy_command(*request),
                   [response](const Outcome&, const RequestContext& context) {
                     fill(response->mutable_policy(),
                          eviction_in_force(context.directory, context.config));
                   });
}

}  // namespace berth::rpc
