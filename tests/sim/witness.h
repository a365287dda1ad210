// The simulator's own list of what everybody was told and of what is really so, compared with the
// directory at every commit and after every restart. Kept apart from the product on purpose.
//
// It checks: the invariants of the state; edges (no transition that docs/architecture.md does not
// draw); promises (acknowledged commits, leases, answers, identities); that nothing is given back
// which somebody may still touch; and that what is read back is what was there.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/sequencer/decide.h"
#include "tests/sim/commands.h"
#include "tests/sim/life_locks.h"
#include "tests/sim/room_witness.h"
#include "tests/sim/schedule.h"
#include "worker/pool/ledger.h"
#include "worker/session/agent.h"

namespace berth::sim {

// The reason of a fence that the simulated operator gives although it does not know: its word is
// proof. Fences with other reasons are of what is really dead.
inline constexpr std::string_view kOperatorsWord = "the operator says so";

// One worker process, from its start to its death; named by half of its request token.
using ProcessKey = uint64_t;

class Witness {
 public:
  Witness(Judge& judge, Random& random, const Weather& weather, const LifeLocks& locks)
      : judge_(judge), random_(random), locks_(locks), room_(judge, random, weather) {}

  RoomWitness& room() { return room_; }
  const RoomWitness& room() const { return room_; }

  // ---- What is really so ----
  void process_started(ProcessKey key, const pool::Ledger* ledger, const worker::Agent* agent);
  void process_died(ProcessKey key);
  void reader_began(LeaseId lease, SessionId client, ProcessKey through,
                    const std::vector<ReplicaId>& replicas);
  void reader_ended(LeaseId lease);
  void writer_began(ReplicaId replica, SessionId client);
  void writer_ended(ReplicaId replica);
  void mapped(PoolId pool) { ++mapped_[pool]; }
  void unmapped(PoolId pool) { --mapped_[pool]; }
  // Nobody holds a life lock under which this client ever joined.
  bool is_dead(const Session& client) const;
  // Told of each session that the operator fenced, alive or not, when that is decided.
  std::function<void(SessionId)> on_operator_fence;
  // Its worker gives this pool's memory back, whoever maps it.
  void pool_will_close(PoolId pool) { given_up_.insert(pool); }
  // An engine was told that its bytes are a hit from now on.
  void commit_told(ReplicaId replica, ProcessKey owner);

  // ---- What the server does ----
  void before_install(const Directory& directory, const DirectoryConfig& config,
                      std::span<const Command> commands, const Decision& decision, Time now);
  // The same number, the same answer; only what was dropped since may be told.
  void check_answers(std::span<const Command> commands, const Decision& decision);
  void after_install(const Directory& directory, std::span<const Command> commands,
                     const Decision& decision);
  // Its outcome is unknown: it may be found on the disk or not.
  void commit_failed(const Directory& directory, std::span<const Command> commands,
                     const Decision& decision);
  // `installed`: after the commit that it answers; none: that failed.
  void reply_left(const Directory* installed, const Result<Outcome>& outcome);
  enum class Loss : uint8_t { kNothing, kUnsynced };
  void server_stopped(const Directory& directory, Loss loss);
  void store_moved() { store_moved_ = true; }
  // Read back, before the restart command.
  void loaded(const Directory& fresh);
  void restarted(const Directory& directory);

  // Compares what the store would give with what is live.
  void check_recovery(const Directory& live, const Directory& rebuilt);
  bool was_fenced_by_operator(SessionId id) const { return fenced_by_operator_.contains(id); }
  bool has_operator_fenced() const { return !fenced_by_operator_.empty(); }
  bool has_power_been_cut() const { return power_cuts_ > 0; }

 private:
  struct Process {
    const pool::Ledger* ledger = nullptr;
    const worker::Agent* agent = nullptr;
    bool alive = true;
    bool settled = true;       // no power cut or other store since it last re-attached
    std::set<ReplicaId> told;  // READY as far as engines know
  };
  struct ReaderFacts {
    SessionId client;
    ProcessKey through = 0;
    std::vector<ReplicaId> replicas;
  };
  struct Answer {
    std::vector<uint8_t> codes;
    ReplicaId first;
    std::vector<PoolId> pools;
    LeaseId lease;
  };

  void check_edge(const Directory& directory, std::span<const Command> commands, ReplicaId id,
                  const Replica* before, const Replica* after, Time now);
  void check_lease_edge(std::span<const Command> commands, LeaseId id, const Lease* before,
                        const Lease* after);
  void note_imports(const Directory& directory, std::span<const Command> commands,
                    const Decision& decision);
  void note_ended_exports(std::span<const Command> commands, const Decision& decision);
  void check_reach(const Directory& directory, const Lease& lease);
  void check_session_edge(const Directory& directory, std::span<const Command> commands,
                          SessionId id, const Session* before, const Session* after);
  // Sessions that the operator fences here.
  std::vector<SessionId> take_operators_word(const Directory& directory,
                                             std::span<const Command> commands,
                                             const Decision& decision);
  void fence_by_operator(SessionId id);
  void check_refusals(const Directory& directory, const DirectoryConfig& config,
                      std::span<const Command> commands, const Decision& decision, Time now);
  void check_budgets(const Directory& directory, const Decision& decision);
  void check_memory(const Directory& directory);
  void check_readers(const Directory& directory);
  void check_attached(const Directory& directory, SessionId worker);

  Process* process_of(const Directory& directory, SessionId worker);
  Process* owner_of(const Directory& directory, PoolId pool);
  bool is_trustworthy(const Process* process) const;  // alive, settled and not draining

  Judge& judge_;
  Random& random_;
  const LifeLocks& locks_;
  std::map<ProcessKey, Process> processes_;
  std::map<LeaseId, ReaderFacts> readers_;
  std::map<ReplicaId, int64_t> reading_;
  std::map<ReplicaId, SessionId> writing_;
  std::map<PoolId, int64_t> mapped_;  // engines that map it
  struct Import {                     // a worker said that it holds this pool's memory
    PoolId pool;
    SessionId worker;
    std::string life_name;
    auto operator<=>(const Import&) const = default;
  };
  std::set<Import> imports_;
  std::map<SessionId, int64_t> in_use_;  // spans that a client may touch
  std::set<ReplicaId> ever_;             // ids that were handed out
  std::set<ReplicaId> left_ready_;
  std::set<SessionId> fenced_by_operator_;
  std::set<SessionId> fences_in_doubt_;  // their commit failed: they may be found after a restart
  std::set<PoolId> given_up_;  // memory that is not watched: an operator or its owner said so
  std::map<OperationKey, Answer> answers_;
  std::set<SessionId> sessions_told_;
  std::set<PoolId> pools_told_;
  std::string last_;        // description of what the disk must hold
  std::string last_other_;  // or this, when a commit failed
  bool last_known_ = false;
  bool store_moved_ = false;
  uint64_t power_cuts_ = 0;
  Epoch epoch_ = 0;
  RoomWitness room_;
};

}  // namespace berth::sim
