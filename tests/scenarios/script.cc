#include "tests/scenarios/script.h"

#include <functional>
#include <sstream>

#include "common/text.h"
#include "common/units.h"

namespace berth {
namespace {

std::vector<int> chunks(const std::vector<std::string>& words, size_t from) {
  std::vector<int> out;
  for (size_t i = from; i < words.size(); ++i) out.push_back(std::stoi(words[i]));
  return out;
}

std::string join_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? "nothing" : out;
}

std::string commit_text(const std::vector<uint8_t>& codes) {
  std::vector<std::string> words;
  for (const uint8_t code : codes)
    words.push_back(code == 1 ? "committed" : code == 2 ? "closed" : "unknown");
  return join_words(words);
}

std::string done_text(const std::vector<uint8_t>& done) {
  std::vector<std::string> words;
  for (const uint8_t d : done) words.push_back(d ? "yes" : "no");
  return join_words(words);
}

}  // namespace

// worker NAME [NODE]          open a worker, re-attach it, bring its Link up
// replace NAME                a new process of that name holds its life lock; tells what was left
// behind pool WORKER NAME PAGES [process] join ENGINE WORKER reserve ENGINE CHUNK...     one page
// each commit ENGINE CHUNK...      the replicas granted last for these chunks abort ENGINE CHUNK...
// probe ENGINE CHUNK...
// acquire LEASE ENGINE CHUNK...
// release LEASE               by its holder
// evict CHUNK...
// reclaimed WORKER CHUNK...   the owner's ACK
// fence ENGINE                its worker proves its death
// wait DURATION               time passes while every Link is up and heard; deadlines are judged
// silence DURATION            time passes without a heartbeat
// down WORKER                 its Link breaks
// reattach WORKER CHUNK...    with a ledger that holds these chunks' latest replicas, sealed
// restart                     the server is killed and comes back
// jobs                        run all long work to its end
// usage POOL
std::string Script::run(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  REQUIRE_FALSE(words.empty());
  const std::string& verb = words[0];
  if (verb == "worker") return worker(words);
  if (verb == "replace") return replace_worker(words);
  if (verb == "pool") return pool(words);
  if (verb == "join") return join(words);
  if (verb == "reserve") return reserve(words);
  if (verb == "commit") return commit(words);
  if (verb == "abort") return abort(words);
  if (verb == "probe") return probe(words);
  if (verb == "acquire") return acquire(words);
  if (verb == "release") return release(words);
  if (verb == "evict") return evict(words);
  if (verb == "reclaimed") return reclaimed(words);
  if (verb == "fence") return fence(words);
  if (verb == "wait" || verb == "silence") return wait(words);
  if (verb == "down") return link_down(words);
  if (verb == "reattach") return reattach(words);
  if (verb == "restart") return restart();
  if (verb == "jobs") return jobs();
  if (verb == "usage") return usage(words);
  FAIL("no such word: " << verb);
  return "";
}

std::string Script::tell(const Command& command,
                         const std::function<std::string(const Outcome&)>& answer) {
  const Result<Outcome> outcome = world_.run(command);
  if (!outcome) return "refused " + std::string(name_of(outcome.error().reason));
  return answer(*outcome) + asks_text();
}

std::string Script::asks_text() const {
  std::string out;
  for (const Ask& ask : world_.asks) {
    switch (ask.kind) {
      case Ask::Kind::kReclaim:
        out += "\nasks to reclaim " + std::to_string(ask.replicas.size());
        break;
      case Ask::Kind::kCancel:
        out += "\nasks to cancel " + std::to_string(ask.replicas.size());
        break;
      case Ask::Kind::kRevoke:
        out += "\nasks to release a lease";
        break;
      case Ask::Kind::kClientFenced:
        out += "\ntells that a client is fenced";
        break;
      case Ask::Kind::kDropImport:
        out += "\nasks to let go of an imported pool";
        break;
      case Ask::Kind::kWorkerFenced:
        out += "\ntells a worker that it is fenced";
        break;
    }
  }
  return out;
}

World::Worker& Script::worker_of(const std::string& engine) {
  return workers_.at(worker_of_engine_.at(engine));
}

std::vector<ReplicaId> Script::latest(const Words& words, size_t from) const {
  std::vector<ReplicaId> out;
  for (const int chunk : chunks(words, from)) out.push_back(replicas_.at(chunk).back());
  return out;
}

std::string Script::worker(const Words& words) {
  workers_[words.at(1)] = world_.open_worker(words[1], words.size() > 2 ? words[2] : "host-a");
  return "attached";
}

std::string Script::replace_worker(const Words& words) {
  ++world_.next_token;
  OpenWorker open = world_.worker_command(words.at(1));
  open.life_lock_held = true;
  return tell(open, [&](const Outcome& outcome) {
    const auto& opened = std::get<WorkerOpened>(outcome);
    workers_[words[1]] = {opened.session, opened.incarnation};
    return "left behind: " + std::to_string(opened.predecessor_clients.size()) + " clients, " +
           std::to_string(opened.orphan_pools.size()) + " pools";
  });
}

std::string Script::pool(const Words& words) {
  const Scope scope = words.size() > 4 && words[4] == "process" ? Scope::kProcess : Scope::kHost;
  pools_[words.at(2)] = world_.open_pool(workers_.at(words.at(1)),
                                         std::stoull(words.at(3)) * World::kPage, scope, words[2]);
  return "registered";
}

std::string Script::join(const Words& words) {
  worker_of_engine_[words.at(1)] = words.at(2);
  engines_[words[1]] = world_.join(workers_.at(words[2]), words[1]);
  return "joined";
}

std::string Script::reserve(const Words& words) {
  const std::string& engine = words.at(1);
  return tell(
      world_.reserve_command(worker_of(engine), engines_.at(engine), namespace_, chunks(words, 2)),
      [&](const Outcome& outcome) {
        const auto& reserved = std::get<Reserved>(outcome);
        uint64_t next = reserved.first.value();
        const std::vector<int> asked = chunks(words, 2);
        for (size_t i = 0; i < asked.size(); ++i)
          if (reserved.codes[i] == static_cast<uint8_t>(StoreCode::kGranted))
            replicas_[asked[i]].push_back(ReplicaId(next++));
        return codes_text(reserved.codes);
      });
}

std::string Script::commit(const Words& words) {
  const std::string& engine = words.at(1);
  return tell(
      world_.commit_command(worker_of(engine), engines_.at(engine), latest(words, 2)),
      [&](const Outcome& outcome) { return commit_text(std::get<Committed>(outcome).codes); });
}

std::string Script::abort(const Words& words) {
  const std::string& engine = words.at(1);
  return tell(Abort{worker_of(engine).caller(), engines_.at(engine), latest(words, 2)},
              [&](const Outcome& outcome) { return done_text(std::get<PerItem>(outcome).done); });
}

std::string Script::probe(const Words& words) {
  const ProbeAnswer answer =
      world_.probe_chunks(engines_.at(words.at(1)), namespace_, chunks(words, 2));
  return std::to_string(answer.classes.size()) + " usable" +
         (answer.miss == MissReason::kNone ? "" : ", then " + std::string(name_of(answer.miss)));
}

std::string Script::acquire(const Words& words) {
  const std::string& engine = words.at(2);
  return tell(
      world_.acquire_command(worker_of(engine), engines_.at(engine), namespace_, chunks(words, 3)),
      [&](const Outcome& outcome) {
        const auto& acquired = std::get<Acquired>(outcome);
        if (acquired.lease.valid()) {
          leases_[words[1]].push_back(acquired.lease);
          holder_of_lease_[words[1]] = engine;
        }
        return std::to_string(acquired.classes.size()) + " protected";
      });
}

std::string Script::release(const Words& words) {
  const std::string& engine = holder_of_lease_.at(words.at(1));
  return tell(Release{worker_of(engine).caller(), engines_.at(engine), leases_.at(words[1])},
              [&](const Outcome& outcome) { return done_text(std::get<PerItem>(outcome).done); });
}

std::string Script::evict(const Words& words) {
  return tell(Evict{latest(words, 1)},
              [&](const Outcome& outcome) { return done_text(std::get<PerItem>(outcome).done); });
}

std::string Script::reclaimed(const Words& words) {
  return tell(ReclaimAck{workers_.at(words.at(1)).caller(), latest(words, 2)},
              [&](const Outcome& outcome) { return done_text(std::get<PerItem>(outcome).done); });
}

std::string Script::fence(const Words& words) {
  return tell(FenceClient{worker_of(words.at(1)).caller(), engines_.at(words[1])},
              [](const Outcome&) { return "fenced"; });
}

std::string Script::wait(const Words& words) {
  world_.now = world_.now + parse_duration("wait", words.at(1)).value();
  if (words[0] == "wait")
    for (const auto& [name, worker] : workers_)
      if (const Presence* p = world_.directory.find<Presence>(worker.session);
          p && p->attachment == Attachment::kAttached)
        world_.must<Done>(Heartbeat{worker.caller(), {}, {}});
  return tell(Tick{}, [](const Outcome&) { return "ticked"; });
}

std::string Script::link_down(const Words& words) {
  const World::Worker& worker = workers_.at(words.at(1));
  return tell(LinkDown{worker.session, worker.incarnation},
              [](const Outcome&) { return "detached"; });
}

std::string Script::reattach(const Words& words) {
  World::Worker& worker = workers_.at(words.at(1));
  std::vector<LedgerRow> rows;
  PoolId pool;
  for (const int chunk : chunks(words, 2)) {
    const ReplicaId id = replicas_.at(chunk).back();
    const Replica* known = world_.directory.find<Replica>(id);
    rows.push_back(World::row(id, chunk, known ? known->offset : 0, LedgerState::kSealed));
    if (known) pool = known->pool;
  }
  std::vector<SessionId> clients;
  for (const auto& [engine, name] : worker_of_engine_)
    if (name == words[1]) clients.push_back(engines_.at(engine));
  static constexpr const char* kWords[] = {"", "keep", "free", "reclaim", "adopted", "quarantine"};
  Words verdicts;
  for (const LedgerVerdict verdict : world_.reattach(worker, pool, rows, {}, clients))
    verdicts.push_back(kWords[static_cast<size_t>(verdict)]);
  return join_words(verdicts) + asks_text();
}

std::string Script::restart() {
  world_.restart();
  return "epoch " + std::to_string(world_.directory.meta().epoch);
}

std::string Script::jobs() {
  world_.drain_jobs();
  return "done";
}

std::string Script::usage(const Words& words) {
  const PoolEntry* entry = world_.directory.find_pool(pools_.at(words.at(1)));
  if (!entry) return "no such pool";
  const auto pages = [](int64_t bytes) { return std::to_string(bytes / int64_t(World::kPage)); };
  return "reserved " + pages(entry->usage.reserved_bytes) + ", ready " +
         pages(entry->usage.ready_allocated_bytes) + ", retiring " +
         pages(entry->usage.retiring_bytes) + ", quarantined " +
         pages(entry->usage.quarantined_bytes);
}

}  // namespace berth
