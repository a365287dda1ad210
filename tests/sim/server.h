// The simulated berthd: the real directory, decide() and store contract, driven as the sequencer
// drives them, behind the real translation and link table. Its streams speak the real messages.
//
// It can be killed, lose power, stand still and lose its disk. What it told anybody is written down
// by the Witness (witness.h), which checks it at every commit.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/v1/directory.pb.h"
#include "common/clock.h"
#include "server/rpc/link_table.h"
#include "server/rpc/translate.h"
#include "server/sequencer/decide.h"
#include "server/store/memory_store.h"
#include "tests/sim/planted.h"
#include "tests/sim/stream.h"
#include "tests/sim/weather.h"

namespace berth::sim {

class Witness;

class Server {
 public:
  using Reply = std::function<void(const Result<Outcome>&)>;
  using SessionReply = std::function<void(const Result<v1::OpenSessionResponse>&)>;

  Server(Schedule& schedule, Random& random, const Weather& weather, Judge& judge, Witness& witness,
         Plant plant);
  ~Server();

  // ---- The process ----
  void start();
  void kill();
  void cut_power();
  void stand_still() { scheduling_.stop(); }
  void go_on() { scheduling_.go_on(); }
  bool is_running() const { return run_ != nullptr; }
  bool is_standing_still() const { return scheduling_.is_stopped(); }
  bool is_degraded() const;
  MemoryDisk& disk() { return disk_; }
  Durability durability() const { return weather_.durability; }

  // ---- What workers reach; each runs in the server's own time, or never ----
  void open_session(const v1::OpenSessionRequest& request, SessionReply reply);
  void open_reattach(const std::shared_ptr<Stream>& stream);
  void reattach_received(const std::shared_ptr<Stream>& stream, const v1::ReattachRequest& message);
  // How the worker's side is called; set before a stream is opened.
  std::function<void(const std::shared_ptr<Stream>&, const v1::ReattachResponse&)> reattach_answer;
  std::function<void(const std::shared_ptr<Stream>&, const v1::LinkResponse&)> link_answer;
  void open_link(const std::shared_ptr<Stream>& stream);
  void link_received(const std::shared_ptr<Stream>& stream, const v1::LinkRequest& message);

  // ---- The operator ----
  void submit(Command command, Reply reply);

  // What is installed; only while it is running.
  const Directory& directory() const;
  Time now() const;              // its logical time
  std::string policies() const;  // what each holds, for people
  const DirectoryConfig& config() const { return weather_.directory; }

 private:
  struct Run;
  class LinkEnd;
  class ReattachEnd;

  struct Queued {
    Command command;
    Reply reply = {};
    // Under which incarnation the sender's connection was made; zero: not known.
    SessionId sender = {};
    Incarnation sent_under = 0;
    std::shared_ptr<const Command> asked = {};  // before a planted bug changed it
  };

  void tick_later();
  void flush_later();
  void end_run();
  void submit(Queued queued);
  void turn_soon();
  void turn();
  bool is_usable() const;
  void advance_time();
  void run_queued();
  std::optional<Outcome> run_own(const Command& command);
  void run_job_slice();
  void run_eviction_slice();
  Result<Decision> carry_out(const std::vector<Queued>& batch);
  void install_and_feed(std::span<const Command> commands, const Decision& decision);
  void check_answers(const std::vector<Queued>& batch, const std::vector<Command>& commands,
                     const Decision& decision);
  void check_incarnation(const Queued& queued, const Result<Outcome>& outcome);
  void check_recovery();
  Result<> load_and_restart();
  void degrade(const Error& why);
  void try_to_recover();
  void announce(const Decision& decision);
  rpc::RequestContext context(const Caller& caller);

  // planted.cc: what a planted bug does here.
  void plant_in_command(Queued& queued);
  void plant_in_decision(std::span<const Command> commands, Decision& decision);
  void plant_in_load(Directory& fresh);
  void plant_in_room(std::span<const Command> commands, Decision& decision);
  void plant_readers_not_awaited(Directory& fresh);
  void plant_in_sharing(std::span<const Command> commands, Decision& decision);
  void plant_in_slice(std::optional<MakeRoom>& slice);
  std::optional<Replica> planted_victim(
      const std::function<bool(const ReplicaSlot&)>& is_meant) const;
  void plant_lost_commit(const std::vector<Queued>& batch, const Decision& decision);
  void plant_after(const Command& command, const Result<Outcome>& outcome);
  void plant_after(const Ask& ask);
  void plant_mutations(const Command& blamed, std::vector<Mutation> mutations);
  void plant_command(Command command);

  Schedule& schedule_;
  Random& random_;
  const Weather& weather_;
  Judge& judge_;
  Witness& witness_;
  const Plant plant_;
  MemoryDisk disk_;
  Scheduling scheduling_;
  std::unique_ptr<Run> run_;
  uint64_t runs_ = 0;
  OperationNumber planted_number_ = 1'000'000;
  bool planted_loss_ = false;
  std::set<std::pair<SessionId, OperationNumber>> planted_seen_;
};

}  // namespace berth::sim
