#include "server/ctl/list_options.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

const std::vector<Field<v1::NamespaceRow>>& namespace_fields() {
  using Row = v1::NamespaceRow;
  const auto number = [](std::string_view key, std::string_view title,
                         uint32_t (v1::NamespaceSpec::*get)() const, Shown shown) -> Field<Row> {
    return {{key, title, Kind::kCount, shown},
            [get](const Row& r) -> Value { return uint64_t{(r.spec().*get)()}; }};
  };
  const auto text = [](std::string_view key, std::string_view title,
                       const std::string& (v1::NamespaceSpec::*get)() const,
                       Shown shown) -> Field<Row> {
    return {{key, title, Kind::kText, shown},
            [get](const Row& r) -> Value { return (r.spec().*get)(); }};
  };
  using Spec = v1::NamespaceSpec;
  static const std::vector<Field<Row>> fields = {
      {{"namespace_id", "ID", Kind::kId}, [](const Row& r) -> Value { return r.namespace_id(); }},
      text("namespace", "NAMESPACE", &Spec::name, Shown::kEverywhere),
      text("application", "APPLICATION", &Spec::application, Shown::kDataOnly),
      text("model", "MODEL", &Spec::model, Shown::kEverywhere),
      text("adapter", "ADAPTER", &Spec::adapter, Shown::kDataOnly),
      text("tokenizer", "TOKENIZER", &Spec::tokenizer, Shown::kDataOnly),
      text("dtype", "DTYPE", &Spec::dtype, Shown::kEverywhere),
      number("layers", "LAYERS", &Spec::layers, Shown::kDataOnly),
      number("kv_heads", "KV-HEADS", &Spec::kv_heads, Shown::kDataOnly),
      number("head_dim", "HEAD-DIM", &Spec::head_dim, Shown::kDataOnly),
      text("storage_format", "FORMAT", &Spec::storage_format, Shown::kDataOnly),
      number("storage_version", "FORMAT-VERSION", &Spec::storage_version, Shown::kDataOnly),
      number("chunk_tokens", "CHUNK", &Spec::chunk_tokens, Shown::kEverywhere),
      number("tensor_parallel", "TP", &Spec::tensor_parallel, Shown::kDataOnly),
      number("pipeline_parallel", "PP", &Spec::pipeline_parallel, Shown::kDataOnly),
      number("shards", "SHARDS", &Spec::shards, Shown::kEverywhere),
      number("parts", "PARTS", &Spec::parts, Shown::kEverywhere),
      number("digest_bytes", "DIGEST", &Spec::digest_bytes, Shown::kEverywhere),
      {{"fingerprint", "FINGERPRINT", Kind::kHex, Shown::kDataOnly},
       [](const Row& r) -> Value { return r.fingerprint(); }},
      {{"quota_bytes", "QUOTA", Kind::kBytes},
       [](const Row& r) { return none_if_zero(r.quota_bytes()); }},
      {{"allocated_bytes", "ALLOCATED", Kind::kBytes},
       [](const Row& r) -> Value { return r.allocated_bytes(); }},
      {{"ready_bytes", "READY", Kind::kBytes},
       [](const Row& r) -> Value { return r.ready_bytes(); }},
      {{"replicas", "REPLICAS", Kind::kCount}, [](const Row& r) -> Value { return r.replicas(); }},
  };
  return fields;
}

Answer<Outcome> produce_namespaces(AdminClient& client, const Arguments& arguments) {
  return produce_list<v1::NamespaceRow>(
      client, v1::ListNamespacesRequest{}, arguments,
      {{"namespaces", "No namespaces: no engine has opened one."}, namespace_fields()},
      [](auto& response) { return response.mutable_namespaces(); },
      [](const v1::NamespaceRow& row) { return row.namespace_id(); });
}

Answer<Outcome> set_quota(AdminClient& client, const Arguments& arguments) {
  const auto quota = arguments.size("SIZE", 0);
  if (!quota) return fail(quota.error());
  v1::SetNamespaceQuotaRequest request;
  request.set_name(arguments.text("NAME"));
  request.set_quota_bytes(*quota);
  auto answer = client.call(request);
  if (!answer) return fail(std::move(answer.error()));
  using Request = v1::SetNamespaceQuotaRequest;
  const std::vector<Field<Request>> fields = {
      {{"namespace", "Namespace"}, [](const Request& r) -> Value { return r.name(); }},
      {{"quota_bytes", "Quota", Kind::kBytes},
       [](const Request& r) { return none_if_zero(r.quota_bytes()); }},
  };
  return Outcome{.view = view_of(record_section("quota", fields, request))};
}

Command set_quota_command() {
  return {
      .name = "set-quota",
      .summary = "Limit the bytes that a namespace may take",
      .details = "Lowering a quota below what is allocated drops nothing; it stops further grants.",
      .example =
          "berthctl namespaces set-quota chat-8b 64GiB\nberthctl namespaces set-quota chat-8b 0",
      .positionals = {{"NAME", "The namespace"}, {"SIZE", "e.g. 64GiB; 0: no limit"}},
      .options = {},
      .kind = CommandKind::kAction,
      .produce = set_quota};
}

}  // namespace

Command namespaces_command() {
  return {
      .name = "namespaces",
      .summary = "Namespaces, their layout and quotas",
      .details =
          "CHUNK is in tokens, DIGEST in bytes. --json and --csv have every field of the layout.",
      .example = "berthctl namespaces\nberthctl namespaces set-quota chat-8b 64GiB",
      .positionals = {},
      .options = {kLimitOption},
      .produce = produce_namespaces,
      .subcommands = {set_quota_command()}};
}

}  // namespace berth::ctl
