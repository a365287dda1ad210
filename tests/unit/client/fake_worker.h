// A Worker service for the client library's tests: real sockets, real descriptors, real memory, and
// answers that a test can replace, hold back, or forget. It grants page after page and never
// reclaims.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "berth/v1/worker.grpc.pb.h"
#include "common/error.h"
#include "common/unique_fd.h"

namespace berth::client::testing {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kPoolBytes = 64 * kPageBytes;

struct Seen {
  std::vector<std::string> calls;  // method names, in order of arrival
  std::vector<v1::JoinHello> hellos;
  std::vector<uint64_t> begun;  // operation numbers of BeginStore, repeats included
  std::vector<uint64_t> loaded;
  std::vector<uint64_t> finished;
  std::vector<uint64_t> aborted;   // replicas
  std::vector<uint64_t> released;  // handles
  std::vector<uint64_t> poisoned;  // operations
  uint64_t low_water = 0;          // of the latest caller
  bool life_was_free_at_leave = false;
};

struct Script {
  std::string finish_codes;        // of every FinishStore, item by item; empty: committed
  uint32_t chunks_present = 0;     // what probe and load find
  uint64_t offset_of_next = 0;     // of the next granted item
  uint64_t first_load_offset = 0;  // of the first chunk of every load
  uint64_t pool_of_loads = 0;      // another than is mapped
  std::vector<uint64_t> ended;     // handles that are not renewed
};

class FakeWorker final : public v1::Worker::Service {
 public:
  explicit FakeWorker(std::string socket, uint64_t incarnation = 1);
  ~FakeWorker() override;

  // What happened so far.
  Seen seen() const;
  // Waits for it; a test that waits for ever is ended by its timeout.
  void await(const std::function<bool(const Seen&)>& condition);

  // What is to happen.
  void script(const std::function<void(Script&)>& change);
  void set_chunks_present(uint32_t chunks) {
    script([chunks](Script& script) { script.chunks_present = chunks; });
  }
  void push(const v1::JoinResponse& message);  // to the joined client
  void end_join();                             // the stream breaks
  void hold(const std::string& method);        // calls wait until let_go; they keep their effect
  void let_go();
  void refuse_next(const std::string& method, Reason reason, int times = 1);

  // ---- Memory ----
  std::string pool_bytes(uint64_t offset, size_t size_bytes) const;
  void write_pool(uint64_t offset, const std::string& bytes);
  // Whether the client of the n-th join holds its life lock no more.
  bool is_life_free(size_t join) const;

 private:
  using Context = grpc::ServerContext;
  grpc::Status Join(Context*,
                    grpc::ServerReaderWriter<v1::JoinResponse, v1::JoinRequest>*) override;
  grpc::Status OpenNamespace(Context*, const v1::WorkerOpenNamespaceRequest*,
                             v1::OpenNamespaceResponse*) override;
  grpc::Status Probe(Context*, const v1::WorkerProbeRequest*, v1::ProbeResponse*) override;
  grpc::Status BeginStore(Context*, const v1::BeginStoreRequest*, v1::BeginStoreResponse*) override;
  grpc::Status FinishStore(Context*, const v1::FinishStoreRequest*,
                           v1::FinishStoreResponse*) override;
  grpc::Status AbortStore(Context*, const v1::AbortStoreRequest*, v1::AbortStoreResponse*) override;
  grpc::Status Load(Context*, const v1::LoadRequest*, v1::LoadResponse*) override;
  grpc::Status Wait(Context*, const v1::WaitRequest*, v1::WaitResponse*) override;
  grpc::Status Renew(Context*, const v1::WorkerRenewRequest*, v1::WorkerRenewResponse*) override;
  grpc::Status Release(Context*, const v1::WorkerReleaseRequest*,
                       v1::WorkerReleaseResponse*) override;
  grpc::Status Leave(Context*, const v1::LeaveRequest*, v1::LeaveResponse*) override;

  using Lock = std::unique_lock<std::mutex>;
  // Notes the call and waits while its method is held. A refusal that was asked for, or OK.
  grpc::Status enter(Lock& lock, const std::string& method, const v1::ClientCaller& caller);
  v1::JoinResponse make_welcome(const v1::JoinHello& hello);
  void pass_descriptors();

  const std::string socket_;
  const uint64_t incarnation_;
  UniqueFd pool_;
  UniqueFd descriptor_listener_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Seen seen_;
  Script script_;
  std::vector<UniqueFd> lives_;    // a second description of each life file, to test its lock
  std::vector<UniqueFd> to_pass_;  // the locked one of the join under way
  std::vector<UniqueFd> connections_;
  grpc::ServerReaderWriter<v1::JoinResponse, v1::JoinRequest>* stream_ = nullptr;
  Context* stream_context_ = nullptr;
  std::string held_;
  bool is_dead_ = false;  // what is held fails, as when the process is killed
  std::map<std::string, std::pair<Reason, int>> refusals_;
  std::map<uint64_t, v1::BeginStoreResponse>
      stores_;  // by operation: a repeat gets the same answer
  std::map<uint64_t, v1::LoadResponse> loads_;
  uint64_t next_replica_ = 100;
  uint64_t next_handle_ = 500;
  uint64_t next_session_ = 0;

  std::unique_ptr<grpc::Server> server_;
  std::thread passer_;
};

}  // namespace berth::client::testing
