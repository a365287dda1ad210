// The sibling socket "<socket>.fd": whoever presents the ticket of a welcome receives the client's
// life lock and the descriptors of the pools it may map (SCM_RIGHTS). The worker's own copy of the
// lock is closed by that, so from then on only the engine and its forks hold it.
//
// The connection stays open as a hint: when it ends, or the peer's pidfd says that the process is
// gone, somebody should look at the life lock. One thread; every connection is bounded in number
// and, before its ticket, in time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/ids.h"
#include "common/unique_fd.h"
#include "worker/local/imported_pool.h"
#include "worker/local/life_keeper.h"

namespace berth::worker {

class DescriptorServer {
 public:
  using OnSuspect = std::function<void(SessionId client)>;

  // Listens at `path`, mode 0660. `keeper` outlives it. Errors: as listen_seqpacket().
  static Result<std::unique_ptr<DescriptorServer>> start(const std::string& path,
                                                         LifeKeeper& keeper, size_t connections_max,
                                                         OnSuspect on_suspect);
  ~DescriptorServer();
  DescriptorServer(const DescriptorServer&) = delete;
  DescriptorServer& operator=(const DescriptorServer&) = delete;

  struct Grant {
    SessionId client;
    std::string life_name;
    std::vector<int> pools;  // borrowed descriptors, open as long as this server lives
    // Instead of the life lock and the pools: those of this one, and the connection ends.
    std::shared_ptr<const ImportedPool> imported = {};
  };
  // Good for one connection.
  void expect(const std::string& ticket, Grant grant);
  void forget(const std::string& ticket);

 private:
  struct Connection {
    UniqueFd socket;
    UniqueFd pidfd;       // invalid where there is none, and once it has spoken
    SessionId client;     // none before the ticket
    int rounds_left = 0;  // before the ticket: how many more seconds it may take
  };

  DescriptorServer(UniqueFd listener, UniqueFd wake, std::string path, LifeKeeper& keeper,
                   size_t connections_max, OnSuspect on_suspect);

  void run();
  void accept_one();
  // False: the connection is over.
  bool serve(Connection& connection);
  bool answer_ticket(Connection& connection, const std::string& ticket);
  void suspect(const Connection& connection);

  const UniqueFd listener_;
  const UniqueFd wake_;
  const std::string path_;
  LifeKeeper& keeper_;
  const size_t connections_max_;
  const OnSuspect on_suspect_;
  std::vector<Connection> connections_;  // of the thread

  std::mutex mutex_;
  std::map<std::string, Grant> grants_;  // guarded by mutex_, by ticket
  bool is_stopping_ = false;             // guarded by mutex_
  std::thread thread_;
};

}  // namespace berth::worker
