// berthd's gRPC side as one thing: services, interceptor, health and reflection, streams and Links.
//
//   RpcEndpoint endpoint(...);
//   sequencer.start(id, &endpoint.listener(), progress);
//   endpoint.start(listeners);      from here on calls are served
//   endpoint.stop(seconds(3));      streams end, calls finish; the sequencer must still run
//   sequencer.stop();
//
// The sequencer, the health, the registry and the clock outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/metrics_registry.h"
#include "common/rpc_server.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/backend.h"
#include "server/rpc/directory_service.h"
#include "server/rpc/server_health.h"

namespace berth::rpc {

class RpcEndpoint final : public SequencerListener {
 public:
  RpcEndpoint(const RpcConfig& config, Sequencer& sequencer, ServerHealth& health,
              MetricsRegistry& registry, const Clock& clock, ServerFacts facts);
  ~RpcEndpoint() override;  // stops

  // Errors: as start_rpc_server().
  Result<> start(const std::vector<RpcListener>& listeners);
  // Ends every stream with `unavailable`, lets unary calls finish, and cancels after `within`
  // what is still open. Idempotent.
  void stop(Duration within);

  // With the real ports where 0 was asked for.
  const std::vector<Address>& addresses() const { return server_.addresses; }
  size_t stream_count() const { return streams_.size(); }

  // ---- SequencerListener ----
  void on_ask(const Ask& ask) override;
  void on_epoch_changed(Epoch epoch) override;
  void on_health_changed(bool degraded, const std::string& reason) override;

 private:
  ServerHealth& health_;
  LinkTable links_;
  StreamTable streams_;
  CallMetrics metrics_;
  ItemMetrics items_;
  Counter& connections_refused_;
  Backend backend_;
  DirectoryService directory_service_;
  AdminService admin_service_;
  RpcServer server_;
};

}  // namespace berth::rpc
