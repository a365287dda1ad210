// One simulated berth-worker: the real agent over the real ledger, with simulated memory, and a
// shell that carries out the agent's actions as worker/session's real one does.
//
// Its name and host outlive its process. A new process has new memory; the old memory lives on as
// long as an engine maps it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/hub.h"
#include "tests/sim/pages.h"
#include "worker/session/agent.h"

namespace berth::sim {

class Engine;

class Worker {
 public:
  using Answered = std::function<void(const Result<worker::Reply>&)>;
  using Input = std::function<void(worker::Agent&, Time)>;

  Worker(Hub& hub, size_t index, std::string node);
  ~Worker();

  void start(BootId boot);
  void kill();
  void stand_still();
  void go_on();
  bool is_running() const { return process_ != nullptr; }
  bool is_standing_still() const;
  // Its service manager's: it ended by itself.
  std::function<void()> on_gave_up;
  // The network takes its connections down.
  enum class Cut : uint8_t { kBothWays, kFromServer, kLate };
  void cut(Cut how);

  // Tells the server that it closes a pool, one that no engine maps. False: there is none.
  bool close_some_pool();

  const std::string& node() const { return node_; }
  ProcessKey process_key() const;
  const worker::Agent* agent() const;
  const pool::Ledger* ledger() const;

  // ---- Engines; what they say arrives unless the process is gone ----
  using Call = std::function<void(worker::Agent&, worker::CallId, Time)>;
  void call(Call make, Answered answered);
  worker::JoinId join(Engine& engine, const v1::JoinHello& hello);
  void join_stream_ended(worker::JoinId join);
  void poison(worker::JoinId join, OperationNumber operation);
  void suspect(SessionId client);

  // ---- Other workers of the host ----
  struct ImportedPool {
    std::shared_ptr<Pages> pages;
    std::string life_name;
  };
  // A pool of another worker, for an engine that was told of it; its life lock is inherited.
  std::optional<ImportedPool> fetch_import(worker::JoinId join, worker::ImportId import);
  void greeted(Worker& importer, uint64_t connection, const v1::WorkerHello& hello);
  void passed(uint64_t connection, const v1::SharedPool& shared, ImportedPool pool);
  void connection_ended(uint64_t connection);
  void break_some_connection();

  // ---- The server ----
  void reattach_received(const std::shared_ptr<Stream>& stream,
                         const v1::ReattachResponse& message);
  void link_received(const std::shared_ptr<Stream>& stream, const v1::LinkResponse& message);

 private:
  struct Process;

  void input(Input what);
  void tick_later();
  void perform_all();
  void perform(worker::Action& action);
  void open_session(const worker::CallOpenSession& call);
  std::shared_ptr<Stream> make_stream(worker::ConnectionId connection);
  void welcome(worker::Welcome& action);
  void end_join(const worker::EndJoin& action);
  void cut_both(Stream& stream);
  void break_late(Stream& stream);
  void test_life(const std::string& life_name);
  void judge_note(const worker::Note& note);
  void plant_reuse();

  // worker_sharing.cc
  void introduce(const worker::Introduce& action);
  void take_identity();
  void find_neighbours();
  void leave_neighbours(Process& process);
  void end_connection(uint64_t connection);
  void hang_up(Worker& peer, uint64_t connection);
  void lock_export(const worker::LockExport& action);
  void pass_export(worker::PassExport action);
  void pass(const worker::PassExport& what);
  void discard_lock(const std::string& life_name);
  void grant_import(const worker::GrantImport& action);
  void drop_import(worker::ImportId import);
  // In a moment, in order, if this process still lives and when it does not stand still.
  void soon(std::function<void()> what);
  bool lives(uint64_t number) const;

  Hub& hub_;
  const size_t index_;
  const std::string node_;
  uint64_t processes_ = 0;
  uint64_t life_names_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace berth::sim
