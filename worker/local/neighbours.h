// The other workers of this host, met in the runtime directory: each listens at
// "<worker name>.share". We connect to every one that is there, say who we are, and are passed the
// HOST pools that it shares; they connect to us, and are passed ours. What is passed to whom is the
// agent's decision (worker/session/agent_sharing.cc); this is its hand.
//
// One thread. A connection stays open as long as both sides live; its end means that everything
// that came over it is let go. Workers with another runtime directory never meet: they could not
// test each other's life locks either.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/unique_fd.h"
#include "worker/local/imported_pool.h"
#include "worker/local/life_keeper.h"
#include "worker/session/host.h"

namespace berth::worker {

struct NeighboursOptions {
  std::string directory;  // the runtime directory
  std::string worker_name;
  std::vector<int> pool_descriptors;  // by configured index; open as long as this lives
  size_t neighbours_max = 64;         // connections in each direction
};

class Neighbours {
 public:
  // Listens. Both outlive it. Errors: as listen_seqpacket().
  static Result<std::unique_ptr<Neighbours>> start(NeighboursOptions options, AgentHost& host,
                                                   LifeKeeper& keeper);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  // Ends every connection and the thread; what is performed later does nothing.
  void stop();

  void perform(Introduce& action);
  void perform(LockExport& action);
  void perform(PassExport& action);
  void perform(DiscardLock& action);
  void perform(DropImport& action);
  // Null once it was dropped.
  std::shared_ptr<const ImportedPool> find(ImportId import);

 private:
  struct Incoming {
    PeerId id;  // none before its hello
    UniqueFd socket;
  };
  struct Outgoing {
    std::string name;  // of its socket file
    UniqueFd socket;
    std::vector<ImportId> imports;
  };

  Neighbours(NeighboursOptions options, UniqueFd listener, UniqueFd wake, AgentHost& host,
             LifeKeeper& keeper);

  void run();
  void wake_thread();
  // ---- Of the thread ----
  void take_identity();
  void pass_waiting();
  // False: the connection is over.
  bool pass(Incoming& peer, const PassExport& what);
  void accept_one();
  bool greet(Incoming& peer);
  void end(Incoming& peer);
  void find_neighbours();
  void connect(const std::string& name);
  bool receive(Outgoing& neighbour);
  void end(Outgoing& neighbour);

  const NeighboursOptions options_;
  const std::string path_;
  const UniqueFd listener_;
  const UniqueFd wake_;
  AgentHost& host_;
  LifeKeeper& keeper_;

  // Of the thread.
  std::vector<Incoming> incoming_;
  std::vector<Outgoing> outgoing_;
  uint64_t peers_made_ = 0;
  uint64_t imports_made_ = 0;
  Introduce known_as_;

  std::mutex mutex_;  // guards what follows
  Introduce identity_;
  bool ends_all_ = false;  // asked for since the thread looked
  std::deque<PassExport> waiting_;
  std::map<ImportId, std::shared_ptr<const ImportedPool>> imports_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::worker
