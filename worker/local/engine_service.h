// The engine-facing service over gRPC's callback API: every call becomes an input of the agent and
// is answered when the agent says so; no thread waits. Join streams, life locks and descriptors are
// tied together here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "berth/v1/worker.grpc.pb.h"
#include "worker/local/call_table.h"
#include "worker/local/descriptor_server.h"
#include "worker/local/join_reactor.h"
#include "worker/local/life_keeper.h"
#include "worker/local/neighbours.h"
#include "worker/session/host.h"

namespace berth::worker {

struct EngineServiceOptions {
  size_t joins_max = 256;    // open Join streams, refused and waiting ones included
  size_t calls_max = 16384;  // calls that wait for an answer
  // How long a finished store waits for the server before its caller hears "not known yet".
  Duration finish_within = seconds(1);
  std::vector<int> pool_descriptors;  // by configured index; open as long as the service
  // Makes written spans visible to every reader (the media's barriers).
  std::function<Result<>(std::span<const WrittenSpan>)> publish;
};

class EngineService final : public v1::Worker::CallbackService, private JoinReactor::Listener {
 public:
  // All of them outlive it.
  EngineService(EngineServiceOptions options, AgentHost& host, LifeKeeper& keeper);
  // Before the server starts. Not owned.
  void set_descriptors(DescriptorServer* descriptors) { descriptors_ = descriptors; }
  void set_neighbours(Neighbours* neighbours) { neighbours_ = neighbours; }

  void perform(Answer& action) { calls_.answer(action); }
  void perform(Welcome& action);
  void perform(Push& action);
  void perform(EndJoin& action);
  void perform(GrantImport& action);
  void perform(DropImport& action);
  void perform(TestLife& action);

  // Ends every call and stream, so that the server can shut down.
  void close();

  grpc::ServerBidiReactor<v1::JoinRequest, v1::JoinResponse>* Join(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* OpenNamespace(grpc::CallbackServerContext* context,
                                          const v1::WorkerOpenNamespaceRequest* request,
                                          v1::OpenNamespaceResponse* response) override;
  grpc::ServerUnaryReactor* Probe(grpc::CallbackServerContext* context,
                                  const v1::WorkerProbeRequest* request,
                                  v1::ProbeResponse* response) override;
  grpc::ServerUnaryReactor* BeginStore(grpc::CallbackServerContext* context,
                                       const v1::BeginStoreRequest* request,
                                       v1::BeginStoreResponse* response) override;
  grpc::ServerUnaryReactor* FinishStore(grpc::CallbackServerContext* context,
                                        const v1::FinishStoreRequest* request,
                                        v1::FinishStoreResponse* response) override;
  grpc::ServerUnaryReactor* AbortStore(grpc::CallbackServerContext* context,
                                       const v1::AbortStoreRequest* request,
                                       v1::AbortStoreResponse* response) override;
  grpc::ServerUnaryReactor* Load(grpc::CallbackServerContext* context,
                                 const v1::LoadRequest* request,
                                 v1::LoadResponse* response) override;
  grpc::ServerUnaryReactor* Wait(grpc::CallbackServerContext* context,
                                 const v1::WaitRequest* request,
                                 v1::WaitResponse* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::WorkerRenewRequest* request,
                                  v1::WorkerRenewResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::WorkerReleaseRequest* request,
                                    v1::WorkerReleaseResponse* response) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override;

 private:
  struct JoinEntry {
    std::shared_ptr<JoinReactor> reactor;
    std::string life_name;
    std::string ticket;
    std::vector<std::pair<ImportId, std::string>> import_tickets;
    bool is_over = false;
  };

  // JoinReactor::Listener
  Result<> greeted(JoinId join, const v1::JoinHello& hello) override;
  void poisoned(JoinId join, OperationNumber operation) override;
  void ended(JoinId join) override;
  void done(JoinId join) override;

  std::shared_ptr<JoinReactor> find(JoinId join);
  // input(agent, call, now)
  template <class Request, class Response, class Input>
  grpc::ServerUnaryReactor* serve(grpc::CallbackServerContext* context, const Request* request,
                                  Response* response, Input input);

  const EngineServiceOptions options_;
  AgentHost& host_;
  LifeKeeper& keeper_;
  DescriptorServer* descriptors_ = nullptr;
  Neighbours* neighbours_ = nullptr;
  CallTable calls_;

  std::mutex mutex_;  // guards what follows
  std::map<JoinId, JoinEntry> joins_;
  uint64_t joins_made_ = 0;
  bool is_closed_ = false;
};

}  // namespace berth::worker
