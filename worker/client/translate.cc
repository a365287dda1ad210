#include "worker/client/translate.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace berth::client {
namespace {

constexpr uint64_t kOffsetPending = ~uint64_t{0};

std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The number of digests, if it is one.
Result<size_t> count_digests(const Namespace& name_space, std::span<const std::byte> digests,
                             uint32_t items_max) {
  const size_t width = name_space.digest_bytes;
  if (!name_space.id.valid() || width == 0)
    return refuse(Reason::kUnknownNamespace, "the namespace was not opened; call open_namespace");
  if (digests.empty() || digests.size() % width != 0)
    return refuse(Reason::kInvalidArgument, "digests = " + std::to_string(digests.size()) +
                                                " bytes: accepted is a multiple of the " +
                                                std::to_string(width) +
                                                " bytes of one digest, at least one");
  const size_t count = digests.size() / width;
  if (items_max != 0 && count > items_max)
    return refuse(Reason::kInvalidArgument, "digests = " + std::to_string(count) +
                                                " items: accepted are 1 to " +
                                                std::to_string(items_max) + " in one batch");
  return count;
}

Result<> check_column(std::string_view name, size_t length, size_t item_count, bool may_be_empty) {
  if (length == item_count || length == 1 || (length == 0 && may_be_empty)) return {};
  return refuse(Reason::kInvalidArgument,
                std::string(name) + " = " + std::to_string(length) + " elements: accepted are " +
                    std::to_string(item_count) + " (one an item)" +
                    (may_be_empty ? ", 1 (for all) or none" : " or 1 (for all)"));
}

void add_targets(std::span<const Target> targets,
                 google::protobuf::RepeatedPtrField<v1::Target>* into) {
  for (const Target& target : targets) {
    v1::Target* added = into->Add();
    added->set_shard(target.shard);
    added->set_session(target.session.value());
  }
}

template <class Message>
Result<Message> to_chain_message(const ChainRequest& request, uint32_t items_max) {
  const Result<size_t> count = count_digests(request.name_space, request.digests, items_max);
  if (!count) return tl::unexpected(count.error());
  Message message;
  message.set_namespace_id(request.name_space.id.value());
  message.set_digests(as_string(request.digests));
  add_targets(request.targets, message.mutable_targets());
  return message;
}

tl::unexpected<Error> misshapen(std::string_view what) {
  return refuse(Reason::kInternal,
                "the worker's answer does not fit together: " + std::string(what));
}

Fingerprint fingerprint_from_bytes(const std::string& bytes) {
  Fingerprint fingerprint;
  for (size_t i = 0; i < 8; ++i) {
    fingerprint.high = fingerprint.high << 8 | static_cast<uint8_t>(bytes[i]);
    fingerprint.low = fingerprint.low << 8 | static_cast<uint8_t>(bytes[8 + i]);
  }
  return fingerprint;
}

}  // namespace

v1::NamespaceSpec to_proto(const NamespaceSpec& spec) {
  v1::NamespaceSpec message;
  message.set_name(spec.name);
  message.set_application(spec.application);
  message.set_model(spec.model);
  message.set_adapter(spec.adapter);
  message.set_tokenizer(spec.tokenizer);
  message.set_dtype(spec.dtype);
  message.set_layers(spec.layers);
  message.set_kv_heads(spec.kv_heads);
  message.set_head_dim(spec.head_dim);
  message.set_storage_format(spec.storage_format);
  message.set_storage_version(spec.storage_version);
  message.set_chunk_tokens(spec.chunk_tokens);
  message.set_tensor_parallel(spec.tensor_parallel);
  message.set_pipeline_parallel(spec.pipeline_parallel);
  message.set_shards(spec.shards);
  message.set_parts(spec.parts);
  message.set_digest_bytes(spec.digest_bytes);
  return message;
}

Result<Namespace> namespace_from_proto(const v1::OpenNamespaceResponse& response) {
  if (response.namespace_id() == 0 || response.fingerprint().size() != 16 ||
      response.spec().digest_bytes() == 0)
    return misshapen("namespace");
  Namespace name_space;
  name_space.id = NamespaceId(response.namespace_id());
  name_space.fingerprint = fingerprint_from_bytes(response.fingerprint());
  name_space.digest_bytes = response.spec().digest_bytes();
  name_space.shards = std::max(response.spec().shards(), 1U);
  name_space.parts = std::max(response.spec().parts(), 1U);
  return name_space;
}

Result<v1::WorkerProbeRequest> to_probe_request(const ChainRequest& request, uint32_t items_max) {
  return to_chain_message<v1::WorkerProbeRequest>(request, items_max);
}

Result<v1::LoadRequest> to_load_request(const ChainRequest& request, Duration ttl,
                                        uint32_t items_max) {
  auto message = to_chain_message<v1::LoadRequest>(request, items_max);
  if (message) message->set_ttl_ms(static_cast<uint32_t>(ttl.millis));
  return message;
}

Result<v1::BeginStoreRequest> to_begin_request(const StoreRequest& request, uint32_t items_max) {
  const Result<size_t> count = count_digests(request.name_space, request.digests, items_max);
  if (!count) return tl::unexpected(count.error());
  for (const auto& checked : {check_column("shards", request.shards.size(), *count, true),
                              check_column("parts", request.parts.size(), *count, true),
                              check_column("sizes", request.sizes.size(), *count, false)})
    if (!checked) return tl::unexpected(checked.error());
  if (!request.positions.empty() && request.positions.size() != *count)
    return refuse(Reason::kInvalidArgument,
                  "positions has " + std::to_string(request.positions.size()) +
                      " elements; accepted: none or " + std::to_string(*count));
  for (const uint64_t size : request.sizes)
    if (size == 0)
      return refuse(Reason::kInvalidArgument, "sizes = 0: accepted is at least 1 byte");

  v1::BeginStoreRequest message;
  message.set_namespace_id(request.name_space.id.value());
  message.set_digests(as_string(request.digests));
  message.mutable_shards()->Add(request.shards.begin(), request.shards.end());
  message.mutable_parts()->Add(request.parts.begin(), request.parts.end());
  message.mutable_sizes()->Add(request.sizes.begin(), request.sizes.end());
  message.set_write_deadline_ms(static_cast<uint32_t>(request.write_within.millis));
  return message;
}

Result<Probe> probe_from_proto(const v1::ProbeResponse& response, size_t chain_length) {
  if (response.usable_chunks() > chain_length ||
      response.classes().size() != response.usable_chunks())
    return misshapen("probe");
  Probe probe;
  probe.usable_chunks = response.usable_chunks();
  probe.classes.reserve(probe.usable_chunks);
  for (const char code : response.classes()) probe.classes.push_back(static_cast<ChunkClass>(code));
  probe.miss_reason = static_cast<MissReason>(response.miss_reason());
  return probe;
}

Result<> fill_store(const v1::BeginStoreResponse& response, const std::vector<uint64_t>& sizes,
                    StoreRecord& record, std::vector<uint64_t>& refused) {
  const std::string& codes = response.codes();
  const auto granted = static_cast<int>(
      std::count(codes.begin(), codes.end(), static_cast<char>(StoreCode::kGranted)));
  if (codes.size() != sizes.size() || response.replicas_size() != granted ||
      response.pools_size() != granted || response.offsets_size() != granted)
    return misshapen("store");

  record.items.resize(codes.size());
  record.replicas.assign(codes.size(), 0);
  int next = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    StoreItem& item = record.items[i];
    item.code = static_cast<StoreCode>(codes[i]);
    if (item.code != StoreCode::kGranted) continue;
    const uint64_t replica = response.replicas(next);
    item.bytes =
        record.maps->writable(PoolId(response.pools(next)), response.offsets(next), sizes[i]);
    ++next;
    if (item.bytes.empty()) {
      item.code = StoreCode::kSkippedUnavailable;
      refused.push_back(replica);
    } else {
      record.replicas[i] = replica;
    }
  }
  return {};
}

Result<uint32_t> fill_load(const v1::LoadResponse& response, size_t chain_length,
                           LoadRecord& record) {
  const size_t runs = size_t{response.chunks()} * record.shards * record.parts;
  if (response.chunks() > chain_length || response.classes().size() != response.chunks() ||
      static_cast<size_t>(response.pools_size()) != runs ||
      static_cast<size_t>(response.offsets_size()) != runs ||
      static_cast<size_t>(response.sizes_size()) != runs)
    return misshapen("load");

  record.state = static_cast<LoadState>(response.state());
  record.miss_reason = static_cast<MissReason>(response.miss_reason());
  record.classes.clear();
  record.spans.clear();
  record.spans.reserve(runs);
  const size_t runs_per_chunk = size_t{record.shards} * record.parts;
  for (uint32_t chunk = 0; chunk < response.chunks(); ++chunk) {
    for (size_t i = chunk * runs_per_chunk; i < (chunk + 1) * runs_per_chunk; ++i) {
      const auto run = static_cast<int>(i);
      const bool is_pending = response.offsets(run) == kOffsetPending;
      const std::span<const std::byte> bytes =
          is_pending ? std::span<const std::byte>()
                     : record.maps->readable(PoolId(response.pools(run)), response.offsets(run),
                                             response.sizes(run));
      if (bytes.empty() && !is_pending) {
        record.spans.resize(chunk * runs_per_chunk);
        record.miss_reason = MissReason::kNotAccessible;
        // Another worker's pool comes and goes while the answer is on its way: a miss like others.
        return record.maps->maps(PoolId(response.pools(run))) ? response.chunks() - chunk : 0;
      }
      record.spans.push_back(bytes);
    }
    record.classes.push_back(static_cast<ChunkClass>(response.classes()[chunk]));
  }
  return 0;
}

std::vector<uint64_t> sizes_by_item(const v1::BeginStoreRequest& request, size_t item_count) {
  if (request.sizes_size() == 1) return std::vector<uint64_t>(item_count, request.sizes(0));
  return {request.sizes().begin(), request.sizes().end()};
}

}  // namespace berth::client
