// What an operator evicts: replicas by id, chunks by digest, a whole namespace, or a pool down to a
// size. The first two answer item by item; the others start a job of the server.
#include <algorithm>

#include "common/text.h"
#include "common/units.h"
#include "server/ctl/chunk_names.h"
#include "server/ctl/fields.h"
#include "server/ctl/name_lookup.h"
#include "server/ctl/percent.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

// Below every server's bound on one request, so that any number of replicas can be named.
constexpr size_t kReplicasPerCall = 256;
// By EvictCode.
const std::vector<std::string> kResults{"not_ready", "retired", "pinned"};
constexpr uint8_t kRetired = 1;
constexpr uint8_t kPinned = 2;

std::string result_word(uint8_t code) {
  return code < kResults.size() ? kResults[code] : std::to_string(code);
}

struct Eviction {
  uint64_t replica = 0;
  uint8_t code = 0;
};

const std::vector<Field<Eviction>>& eviction_fields() {
  static const std::vector<Field<Eviction>> fields = {
      {{"replica", "REPLICA", Kind::kId}, [](const Eviction& e) -> Value { return e.replica; }},
      {{"retired", "RETIRED", Kind::kFlag},
       [](const Eviction& e) -> Value { return e.code == kRetired; }},
      {{"result", "RESULT", Kind::kWord},
       [](const Eviction& e) -> Value { return result_word(e.code); }},
  };
  return fields;
}

// Exit code and notes; `things` are "replicas" or "chunks".
void judge(Outcome& outcome, const std::vector<uint8_t>& codes, const std::string& things) {
  const auto pinned = std::count(codes.begin(), codes.end(), kPinned);
  const auto absent = std::count(codes.begin(), codes.end(), 0);
  const std::string of = " of " + std::to_string(codes.size()) + " " + things;
  if (absent > 0)
    outcome.notes.push_back(std::to_string(absent) + of + " were not READY or are not known");
  if (pinned > 0)
    outcome.notes.push_back(std::to_string(pinned) + of +
                            " have a pin that keeps them; `berthctl unpin` takes it off");
  if (absent + pinned > 0) outcome.exit_code = ExitCode::kRefused;
}

// ---- By id

std::vector<std::string> replica_texts(const Arguments& arguments) {
  std::vector<std::string> texts = arguments.all("REPLICA");
  const std::vector<std::string> named = arguments.all("--replica");
  texts.insert(texts.end(), named.begin(), named.end());
  return texts;
}

Answer<std::vector<Eviction>> parse_replicas(const Arguments& arguments) {
  std::vector<Eviction> evictions;
  for (const std::string& text : replica_texts(arguments)) {
    const auto replica = parse_id("REPLICA", text);
    if (!replica) return fail(replica.error());
    evictions.push_back({.replica = *replica});
  }
  return evictions;
}

Answer<Outcome> evict_replicas(AdminClient& client, const Arguments& arguments) {
  auto evictions = parse_replicas(arguments);
  if (!evictions) return fail(std::move(evictions.error()));
  std::vector<uint8_t> codes;
  for (size_t begin = 0; begin < evictions->size(); begin += kReplicasPerCall) {
    const size_t end = std::min(begin + kReplicasPerCall, evictions->size());
    v1::EvictRequest request;
    for (size_t i = begin; i < end; ++i) request.add_replicas((*evictions)[i].replica);
    auto answer = client.call(request);
    if (!answer) {
      if (begin > 0)
        answer.error().message +=
            "; the first " + std::to_string(begin) + " replicas were retired where READY";
      return fail(std::move(answer.error()));
    }
    for (size_t i = begin; i < end; ++i) {
      const size_t column = i - begin;
      const std::string& retired = answer->retired();
      (*evictions)[i].code = column < retired.size() ? static_cast<uint8_t>(retired[column]) : 0;
      codes.push_back((*evictions)[i].code);
    }
  }
  Outcome outcome{.view =
                      view_of(section_of(SectionText{"evicted"}, eviction_fields(), *evictions))};
  judge(outcome, codes, "replicas");
  return outcome;
}

// ---- By digest

Answer<Outcome> evict_chunks(AdminClient& client, const Arguments& arguments) {
  const auto chunks =
      read_chunks(client, arguments.text("--namespace"), "--digest", arguments.all("--digest"));
  if (!chunks) return fail(chunks.error());
  const auto codes = send_chunks(client, *chunks, v1::EvictRequest{},
                                 [](const auto& answer) { return answer.retired(); });
  if (!codes) return fail(codes.error());
  Outcome outcome = chunk_outcome("evicted", *chunks, *codes, kResults);
  judge(outcome, *codes, "chunks");
  return outcome;
}

// ---- By a job

Outcome job_outcome(const v1::JobResponse& response) {
  const std::vector<Field<v1::JobResponse>> fields = {
      {{"job", "Job", Kind::kId}, [](const v1::JobResponse& r) -> Value { return r.job(); }}};
  return {.view = view_of(record_section("job", fields, response)),
          .notes = {"`berthctl jobs` shows it until it is done"}};
}

Answer<Outcome> evict_namespace(AdminClient& client, const Arguments& arguments) {
  const std::string name = arguments.text("--namespace");
  if (!arguments.has("--yes"))
    return fail_usage(
        "--all retires everything of namespace " + quote(name) + ", pinned copies included",
        "Repeat it with --yes if that is what you want.");
  v1::EvictNamespaceRequest request;
  request.set_name(name);
  const auto answer = client.call(request);
  if (!answer) return fail(answer.error());
  return job_outcome(*answer);
}

// "8GiB", or "40%" of what may be granted in the pool.
Answer<uint64_t> target_bytes(const std::string& text, const v1::PoolRow& pool) {
  if (!text.ends_with('%')) return usage_answer(parse_size("--to", text));
  const auto permille = parse_permille("--to", text);
  if (!permille) return fail(permille.error());
  const uint64_t budget = std::min(pool.usage().budget_bytes(), pool.usage().capacity_bytes());
  return share_of(budget, *permille);
}

Answer<Outcome> trim_pool(AdminClient& client, const Arguments& arguments) {
  if (arguments.text("--to").empty())
    return fail_usage("--pool needs --to: a size such as 8GiB, or a share such as 40%");
  // What can be wrong with it is said before anything is sent.
  if (const auto form = target_bytes(arguments.text("--to"), v1::PoolRow()); !form)
    return fail(form.error());
  const auto pool = find_pool(client, "--pool", arguments.text("--pool"));
  if (!pool) return fail(pool.error());
  v1::TrimPoolRequest request;
  request.set_pool(pool->pool());
  request.set_target_bytes(*target_bytes(arguments.text("--to"), *pool));
  const auto answer = client.call(request);
  if (!answer) return fail(answer.error());
  return job_outcome(*answer);
}

Answer<Outcome> evict(AdminClient& client, const Arguments& arguments) {
  const bool by_id = !replica_texts(arguments).empty();
  const bool by_namespace = arguments.has("--namespace");
  const bool by_pool = arguments.has("--pool");
  if (by_id + by_namespace + by_pool != 1)
    return fail_usage(
        "say what to evict: REPLICA ids, or --namespace with --digest or --all, or --pool with "
        "--to");
  const bool by_digest = arguments.has("--digest");
  if ((by_digest || arguments.has("--all")) && !by_namespace)
    return fail_usage("--digest and --all need --namespace NAME");
  if (arguments.has("--to") && !by_pool) return fail_usage("--to needs --pool POOL");
  if (by_id) return evict_replicas(client, arguments);
  if (by_pool) return trim_pool(client, arguments);
  if (by_digest == arguments.has("--all"))
    return fail_usage("--namespace needs one of --digest HEX and --all");
  return by_digest ? evict_chunks(client, arguments) : evict_namespace(client, arguments);
}

}  // namespace

Command evict_command() {
  return {
      .name = "evict",
      .summary = "Retire replicas: by id, by chunk, of a namespace, or of a pool",
      .details =
          "Leases keep an evicted replica until they end; no new reader gets it. By id and by "
          "digest, pinned\n"
          "copies stay, and it exits with 1 when something was pinned, not READY or not known; the "
          "others are\n"
          "retired all the same. --all takes pinned copies, too. --pool lets the eviction policy "
          "choose until\n"
          "at most --to is held. The last two are jobs of the server: see `berthctl jobs`.",
      .example =
          "berthctl evict e3-17 e3-18\n"
          "berthctl evict --namespace chat-8b --digest 00112233445566778899aabbccddeeff\n"
          "berthctl evict --namespace chat-8b --all --yes\n"
          "berthctl evict --pool gpu0/cpu --to 40%",
      .positionals = {{"REPLICA", "Replica ids, e.g. e3-17", Arity::kAny}},
      .options = {{"--replica", "ID", "Replica ids, too", {}, Arity::kMany},
                  {"--namespace", "NAME", "Of this namespace: --digest or --all"},
                  {"--digest", "HEX", "Whole prefix digests", {}, Arity::kMany},
                  {"--all", "", "Everything of the namespace that exists now, pinned or not"},
                  {"--yes", "", "Go ahead with --all"},
                  {"--pool", "POOL", "A pool's id, or WORKER/POOL"},
                  {"--to", "SIZE|PERCENT%", "Until at most this is held; 0: all that may go"}},
      .kind = CommandKind::kAction,
      .produce = evict,
      .timeout = seconds(30)};
}

}  // namespace berth::ctl
