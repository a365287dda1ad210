#include "server/rpc/rpc_endpoint.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "common/log.h"
#include "common/random.h"

namespace berth::rpc {

RpcEndpoint::RpcEndpoint(const RpcConfig& config, Sequencer& sequencer, ServerHealth& health,
                         MetricsRegistry& registry, const Clock& clock, ServerFacts facts)
    : health_(health),
      streams_(config.streams_max),
      metrics_(registry, clock),
      items_(registry),
      connections_refused_(
          registry.counter({"berth_connections_refused_total",
                            "Connections turned away because too few descriptors were left."})),
      backend_{config, sequencer, links_, streams_, metrics_, items_, clock, random_id128},
      directory_service_(backend_),
      admin_service_(backend_, health, std::move(facts)) {}

RpcEndpoint::~RpcEndpoint() { stop(Duration{}); }

Result<> RpcEndpoint::start(const std::vector<RpcListener>& listeners) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(&directory_service_);
  builder.RegisterService(&admin_service_);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(metrics_.interceptor_factory());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  auto started = start_rpc_server(builder, listeners, [this] { connections_refused_.add(); });
  if (!started) return tl::unexpected(started.error());
  server_ = std::move(*started);
  health_.announce_by(server_.server->GetHealthCheckService());
  return {};
}

void RpcEndpoint::stop(Duration within) {
  if (!server_.server) return;
  health_.set_stopping();
  streams_.end_all({Reason::kUnavailable, "the server is stopping"});
  // A peer that does not read cannot hold the stop: its calls are cancelled at the deadline.
  server_.shut_down(within);
  server_.server->Wait();
  health_.announce_by(nullptr);
  server_.server.reset();
}

void RpcEndpoint::on_ask(const Ask& ask) { links_.deliver(ask); }

void RpcEndpoint::on_epoch_changed(Epoch epoch) {
  log::info("epoch_changed", {{"epoch", epoch}});
  links_.end_all({Reason::kUnavailable, "the server reloaded its store; re-attach"});
}

void RpcEndpoint::on_health_changed(bool degraded, const std::string& reason) {
  if (degraded)
    health_.set_degraded(reason);
  else
    health_.set_serving();
}

}  // namespace berth::rpc
