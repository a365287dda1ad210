// Namespaces: the canonical spec, its fingerprint, and back.
#include "common/names.h"
#include "server/rpc/canonical_bytes.h"
#include "server/rpc/fields.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

constexpr uint32_t kChunkTokensMax = 65'536;
constexpr uint32_t kShardsMax = 1024;
constexpr uint32_t kPartsMax = 1024;

uint32_t one_if_zero(uint32_t value) { return value == 0 ? 1 : value; }

}  // namespace

Result<NamespaceSpec> namespace_spec_from_wire(const v1::NamespaceSpec& wire) {
  constexpr auto kText = kNamespaceTextLengthMax;
  Fields fields;
  NamespaceSpec spec;
  spec.name = fields.name("spec.name", wire.name(), Given::kRequired, kNamespaceNameLengthMax);
  spec.application = fields.text("spec.application", wire.application(), Given::kOptional, kText);
  spec.model = fields.text("spec.model", wire.model(), Given::kRequired, kText);
  spec.adapter = fields.text("spec.adapter", wire.adapter(), Given::kOptional, kText);
  spec.tokenizer = fields.text("spec.tokenizer", wire.tokenizer(), Given::kOptional, kText);
  spec.dtype = fields.text("spec.dtype", wire.dtype(), Given::kRequired, kText);
  spec.layers = wire.layers();
  spec.kv_heads = wire.kv_heads();
  spec.head_dim = wire.head_dim();
  spec.storage_format =
      fields.text("spec.storage_format", wire.storage_format(), Given::kOptional, kText);
  spec.storage_version = wire.storage_version();
  spec.chunk_tokens = fields.number32("spec.chunk_tokens", wire.chunk_tokens(), 1, kChunkTokensMax);
  spec.tensor_parallel = one_if_zero(wire.tensor_parallel());
  spec.pipeline_parallel = one_if_zero(wire.pipeline_parallel());
  spec.shards = fields.number32("spec.shards", one_if_zero(wire.shards()), 1, kShardsMax);
  spec.parts = fields.number32("spec.parts", one_if_zero(wire.parts()), 1, kPartsMax);
  // One chunk must fit into the answer of an Acquire.
  fields.number("spec.shards * spec.parts", uint64_t{spec.shards} * spec.parts, 1, kLocationsMax);
  spec.digest_bytes =
      fields.number32("spec.digest_bytes", wire.digest_bytes(), kDigestBytesMin, kDigestBytesMax);
  return fields.checked(std::move(spec));
}

Fingerprint fingerprint_of(const NamespaceSpec& spec) {
  CanonicalBytes bytes("berth namespace 1");
  bytes.add(spec.name).add(spec.application).add(spec.model).add(spec.adapter);
  bytes.add(spec.tokenizer).add(spec.dtype);
  bytes.add(spec.layers).add(spec.kv_heads).add(spec.head_dim);
  bytes.add(spec.storage_format).add(spec.storage_version).add(spec.chunk_tokens);
  bytes.add(spec.tensor_parallel).add(spec.pipeline_parallel);
  bytes.add(spec.shards).add(spec.parts).add(spec.digest_bytes);
  return bytes.hash128();
}

v1::NamespaceSpec to_wire(const NamespaceSpec& spec) {
  v1::NamespaceSpec wire;
  wire.set_name(spec.name);
  wire.set_application(spec.application);
  wire.set_model(spec.model);
  wire.set_adapter(spec.adapter);
  wire.set_tokenizer(spec.tokenizer);
  wire.set_dtype(spec.dtype);
  wire.set_layers(spec.layers);
  wire.set_kv_heads(spec.kv_heads);
  wire.set_head_dim(spec.head_dim);
  wire.set_storage_format(spec.storage_format);
  wire.set_storage_version(spec.storage_version);
  wire.set_chunk_tokens(spec.chunk_tokens);
  wire.set_tensor_parallel(spec.tensor_parallel);
  wire.set_pipeline_parallel(spec.pipeline_parallel);
  wire.set_shards(spec.shards);
  wire.set_parts(spec.parts);
  wire.set_digest_bytes(spec.digest_bytes);
  return wire;
}

Result<OpenNamespace> to_command(const v1::OpenNamespaceRequest& request, const RequestContext&) {
  auto spec = namespace_spec_from_wire(request.spec());
  if (!spec) return tl::unexpected(spec.error());
  const Fingerprint fingerprint = fingerprint_of(*spec);
  return OpenNamespace{std::move(*spec), fingerprint};
}

void fill(v1::OpenNamespaceResponse* response, const NamespaceOpened& opened,
          const RequestContext& context) {
  response->set_namespace_id(opened.id.value());
  if (const auto* record = context.directory.find<Namespace>(opened.id)) {
    response->set_fingerprint(bytes_of(record->fingerprint));
    *response->mutable_spec() = to_wire(record->spec);
  }
}

}  // namespace berth::rpc
