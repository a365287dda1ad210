#include "server/ctl/chunk_names.h"

#include <algorithm>

#include "common/text.h"
#include "server/ctl/pages.h"

namespace berth::ctl {
namespace {

constexpr uint64_t kChunksPerCall = 256;
// The server looks at no more copies in one request: each chunk has all its shards and parts.
constexpr uint64_t kCopiesPerCall = 65'536;

Answer<v1::NamespaceRow> find_namespace(AdminClient& client, const std::string& name) {
  auto listed = fetch_pages<v1::NamespaceRow>(
      client, v1::ListNamespacesRequest{}, 0,
      [](auto& response) { return response.mutable_namespaces(); },
      [](const auto&, const std::vector<v1::NamespaceRow>& rows) {
        return rows.empty() ? 0 : rows.back().namespace_id();
      });
  if (!listed) return fail(std::move(listed.error()));
  for (v1::NamespaceRow& row : listed->rows)
    if (row.spec().name() == name) return std::move(row);
  return fail({ExitCode::kRefused, "refused: no namespace " + quote(name) + " (unknown_namespace)",
               "`berthctl namespaces` lists them.", "unknown_namespace"});
}

Answer<std::string> read_digest(std::string_view argument, const std::string& hex,
                                const v1::NamespaceSpec& spec) {
  auto digest = usage_answer(bytes_from_hex(argument, hex));
  if (!digest || digest->size() == spec.digest_bytes()) return digest;
  return fail_usage(name_and_value(argument, hex) + ": accepted: a whole digest of namespace " +
                        spec.name() + ", " + std::to_string(spec.digest_bytes() * 2) +
                        " characters of hex",
                    "`berthctl objects --namespace " + spec.name() +
                        " --digest-prefix HEX` finds those that begin so.");
}

struct ChunkResult {
  std::string digest;
  std::string result;
};

const std::vector<Field<ChunkResult>>& chunk_result_fields() {
  static const std::vector<Field<ChunkResult>> fields = {
      {{"digest", "DIGEST", Kind::kHex}, [](const ChunkResult& r) -> Value { return r.digest; }},
      {{"result", "RESULT", Kind::kWord}, [](const ChunkResult& r) -> Value { return r.result; }},
  };
  return fields;
}

}  // namespace

Answer<NamedChunks> read_chunks(AdminClient& client, const std::string& namespace_name,
                                std::string_view argument, const std::vector<std::string>& hex) {
  const auto ns = find_namespace(client, namespace_name);
  if (!ns) return fail(ns.error());
  const v1::NamespaceSpec& spec = ns->spec();
  NamedChunks chunks{.namespace_name = namespace_name, .digests = {}};
  const uint64_t copies = std::max<uint64_t>(1, uint64_t{spec.shards()} * spec.parts());
  chunks.per_call = std::clamp<uint64_t>(kCopiesPerCall / copies, 1, kChunksPerCall);
  for (const std::string& text : hex) {
    auto digest = read_digest(argument, text, spec);
    if (!digest) return fail(std::move(digest.error()));
    chunks.digests.push_back(std::move(*digest));
  }
  return chunks;
}

Outcome chunk_outcome(std::string_view section, const NamedChunks& chunks,
                      const std::vector<uint8_t>& codes, const std::vector<std::string>& words) {
  std::vector<ChunkResult> results;
  for (size_t i = 0; i < codes.size(); ++i)
    results.push_back(
        {chunks.digests[i], codes[i] < words.size() ? words[codes[i]] : std::to_string(codes[i])});
  return {.view = view_of(section_of(SectionText{section}, chunk_result_fields(), results))};
}

}  // namespace berth::ctl
