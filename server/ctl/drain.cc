// Taking pools out of use, and back. A drain is the server's work: this only starts it and shows
// it, so it may be left and called again at any time.
#include <algorithm>
#include <ostream>

#include "server/ctl/drain_progress.h"
#include "server/ctl/name_lookup.h"
#include "server/ctl/pool_words.h"
#include "server/ctl/views.h"
#include "server/ctl/watch.h"

namespace berth::ctl {
namespace {

constexpr Duration kPollInterval = milliseconds(250);

const std::vector<Field<v1::PoolRow>>& drain_fields() {
  using Pool = v1::PoolRow;
  static const std::vector<Field<Pool>> fields = {
      {{"pool", "POOL", Kind::kId}, [](const Pool& p) -> Value { return p.pool(); }},
      {{"name", "NAME"}, [](const Pool& p) -> Value { return p.spec().name(); }},
      {{"worker", "WORKER"}, [](const Pool& p) -> Value { return p.owner_name(); }},
      {{"state", "STATE", Kind::kWord}, pool_state_word},
      {{"left", "LEFT", Kind::kCount},
       [](const Pool& p) -> Value { return left_in({p}).replicas(); }},
      {{"ready_replicas", "READY", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().ready_replicas(); }},
      {{"leased_replicas", "LEASED", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().leased_replicas(); }},
      {{"reserved_replicas", "WRITING", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().reserved_replicas(); }},
      {{"retiring_replicas", "RETIRING", Kind::kCount},
       [](const Pool& p) -> Value { return p.usage().retiring_replicas(); }},
      {{"quarantined_replicas", "QUARANTINED", Kind::kCount, Shown::kEverywhere, true},
       [](const Pool& p) -> Value { return p.usage().quarantined_replicas(); }},
      {{"allocated_bytes", "ALLOCATED", Kind::kBytes},
       [](const Pool& p) -> Value { return p.usage().allocated_bytes(); }},
  };
  return fields;
}

// The rows of these pools; one that is no longer known holds nothing.
Answer<std::vector<v1::PoolRow>> rows_of(AdminClient& client,
                                         const google::protobuf::RepeatedField<uint64_t>& ids) {
  auto pools = all_pools(client);
  if (!pools) return pools;
  std::erase_if(*pools, [&](const v1::PoolRow& row) {
    return std::find(ids.begin(), ids.end(), row.pool()) == ids.end();
  });
  return pools;
}

View view_of_pools(const std::vector<v1::PoolRow>& pools) {
  return view_of(
      section_of(SectionText{"pools", "No pools: the worker has none."}, drain_fields(), pools));
}

bool may_come_back(const Failure& failure) {
  return failure.exit_code == ExitCode::kUnreachable || failure.exit_code == ExitCode::kNotReady;
}

// Until nothing is left, or somebody undrains, or the console says stop.
class DrainWait {
 public:
  DrainWait(AdminClient& client, const v1::DrainResponse& drained, Console& console)
      : client_(client), drained_(drained), console_(console), progress_(console) {}

  // The rows at the end. Failures: the server refuses, or a pool was undrained.
  Answer<std::vector<v1::PoolRow>> run() {
    while (true) {
      auto pools = rows_of(client_, drained_.pools());
      if (!pools && !may_come_back(pools.error())) return pools;
      if (!pools) {
        say_outage(pools.error().message);
      } else {
        outage_said_ = false;
        const DrainLeft left = left_in(*pools);
        if (left.undrained)
          return fail({ExitCode::kRefused, "the pool was taken back into use meanwhile",
                       "See `berthctl events` for when; `berthctl drain` starts it again.", ""});
        progress_.show(left);
        if (left.replicas() == 0) return pools;
      }
      if (!console_.wait(kPollInterval))
        return fail({ExitCode::kNotReady, "not empty yet; the drain goes on",
                     "The same command shows it again.", ""});
    }
  }

 private:
  void say_outage(const std::string& message) {
    if (!outage_said_) progress_.say("berthctl drain: " + message + "; trying again");
    outage_said_ = true;
  }

  AdminClient& client_;
  const v1::DrainResponse& drained_;
  Console& console_;
  DrainProgress progress_;
  bool outage_said_ = false;
};

Answer<std::vector<v1::PoolRow>> wait_until_empty(AdminClient& client,
                                                  const v1::DrainResponse& drained,
                                                  const std::string& what, Console& console) {
  console.err << "berthctl drain: Ctrl-C leaves the drain going; `berthctl drain " << what
              << " --wait` shows it again" << std::endl;
  return DrainWait(client, drained, console).run();
}

Answer<ExitCode> drain(AdminClient& client, const Arguments& arguments, Format format,
                       Console& console) {
  const std::string what = arguments.text("TARGET");
  const auto request = find_pool_or_worker(client, "TARGET", what);
  if (!request) return fail(request.error());
  const auto drained = client.drain(*request);
  if (!drained) return fail(drained.error());
  auto pools = arguments.has("--wait") ? wait_until_empty(client, *drained, what, console)
                                       : rows_of(client, drained->pools());
  if (!pools) return fail(std::move(pools.error()));
  console.out << view_text(view_of_pools(*pools), format, console) << std::flush;
  if (const DrainLeft left = left_in(*pools); left.replicas() > 0)
    console.err << note_text("berthctl drain", left.text() + "; --wait waits for them");
  return ExitCode::kOk;
}

Answer<Outcome> undrain(AdminClient& client, const Arguments& arguments) {
  const auto request = find_pool_or_worker(client, "TARGET", arguments.text("TARGET"));
  if (!request) return fail(request.error());
  const auto undrained = client.undrain(*request);
  if (!undrained) return fail(undrained.error());
  auto pools = rows_of(client, undrained->pools());
  if (!pools) return fail(std::move(pools.error()));
  return Outcome{.view = view_of_pools(*pools)};
}

const PositionalSpec& target_positional() {
  static const PositionalSpec spec{
      "TARGET", "A pool's id or WORKER/POOL, or a worker's name or session id: all its pools"};
  return spec;
}

}  // namespace

Command drain_command() {
  return {
      .name = "drain",
      .summary = "Take a pool, or all pools of a worker, out of use",
      .details =
          "Hidden at once and given no more grants; what is READY retires, pinned copies "
          "included. Leases\n"
          "keep what they protect until they end. The memory stays registered. --wait shows "
          "the rest going\n"
          "and exits with 0 when nothing is left; it may be interrupted and called again. It "
          "exits with 1\n"
          "when somebody undrained the pool meanwhile.",
      .example = "berthctl drain gpu0 --wait\nberthctl drain gpu0/cpu\nberthctl drain e3-2 --json",
      .positionals = {target_positional()},
      .options = {{"--wait", "", "Show the progress until nothing is left"}},
      .kind = CommandKind::kStream,
      .stream = drain,
      .timeout = seconds(30)};
}

Command undrain_command() {
  return {.name = "undrain",
          .summary = "Take a drained pool back into use",
          .details = "What was retired meanwhile stays retired.",
          .example = "berthctl undrain gpu0\nberthctl undrain gpu0/cpu",
          .positionals = {target_positional()},
          .options = {},
          .kind = CommandKind::kAction,
          .produce = undrain,
          .timeout = seconds(30)};
}

}  // namespace berth::ctl
