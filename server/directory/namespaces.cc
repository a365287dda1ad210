// Handlers of namespaces: registered once, immutable but for the quota.
#include "server/directory/context.h"

namespace berth {
namespace {

// Empty when equal; else "field is X, asked for Y".
std::string difference(const NamespaceSpec& have, const NamespaceSpec& want) {
  const auto text = [](const char* field, const std::string& a, const std::string& b) {
    return a == b ? std::string()
                  : std::string(field) + " is \"" + a + "\", asked for \"" + b + "\"";
  };
  const auto number = [](const char* field, uint32_t a, uint32_t b) {
    return a == b ? std::string()
                  : std::string(field) + " is " + std::to_string(a) + ", asked for " +
                        std::to_string(b);
  };
  const std::string differences[] = {
      text("application", have.application, want.application),
      text("model", have.model, want.model),
      text("adapter", have.adapter, want.adapter),
      text("tokenizer", have.tokenizer, want.tokenizer),
      text("dtype", have.dtype, want.dtype),
      number("layers", have.layers, want.layers),
      number("kv_heads", have.kv_heads, want.kv_heads),
      number("head_dim", have.head_dim, want.head_dim),
      text("storage_format", have.storage_format, want.storage_format),
      number("storage_version", have.storage_version, want.storage_version),
      number("chunk_tokens", have.chunk_tokens, want.chunk_tokens),
      number("tensor_parallel", have.tensor_parallel, want.tensor_parallel),
      number("pipeline_parallel", have.pipeline_parallel, want.pipeline_parallel),
      number("shards", have.shards, want.shards),
      number("parts", have.parts, want.parts),
      number("digest_bytes", have.digest_bytes, want.digest_bytes),
  };
  for (const std::string& difference : differences)
    if (!difference.empty()) return difference;
  return "";
}

NamespaceId next_namespace_id(const Context& c) {
  uint64_t last = 0;
  if (!c.draft.base().namespaces().empty())
    last = c.draft.base().namespaces().rbegin()->first.value();
  c.draft.each_staged<Namespace>([&](const Namespace& n) { last = std::max(last, n.id.value()); });
  return NamespaceId(last + 1);
}

}  // namespace

Result<Outcome> handle(const Context& c, const OpenNamespace& command) {
  if (const Namespace* known = c.draft.namespace_by_name(command.spec.name)) {
    const std::string differs = difference(known->spec, command.spec);
    if (differs.empty()) return NamespaceOpened{known->id};
    return refuse(Reason::kNamespaceMismatch,
                  "namespace \"" + command.spec.name + "\": " + differs);
  }
  const NamespaceId id = next_namespace_id(c);
  if (id.value() > c.config.namespaces_max)
    return refuse(Reason::kLimitReached,
                  "limits.namespaces_max = " + std::to_string(c.config.namespaces_max) +
                      " namespaces are registered; cannot add \"" + command.spec.name + "\"");
  c.draft.put(Namespace{id, command.spec, command.fingerprint, c.config.namespace_quota_bytes,
                        ReplicaId()});
  c.draft.require_sync();
  c.draft.emit(
      {.kind = EventKind::kNamespaceOpened, .namespace_id = id, .reason = command.spec.name});
  return NamespaceOpened{id};
}

Result<Outcome> handle(const Context& c, const SetNamespaceQuota& command) {
  const Namespace* known = c.draft.namespace_by_name(command.name);
  if (!known) return refuse(Reason::kUnknownNamespace, "no namespace \"" + command.name + "\"");
  Namespace changed = *known;
  changed.quota_bytes = command.quota_bytes;
  c.draft.require_sync();
  c.draft.emit({.kind = EventKind::kNamespaceQuotaSet,
                .count = command.quota_bytes,
                .namespace_id = changed.id});
  c.draft.put(std::move(changed));
  return Done{};
}

}  // namespace berth
