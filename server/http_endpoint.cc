#include "server/http_endpoint.h"

#include <string>

namespace berth {
namespace {

constexpr const char* kStarting = "starting: the store is being read\n";
constexpr const char* kText = "text/plain; charset=utf-8";

}  // namespace

Result<> HttpEndpoint::start(const Address& address, const Clock& clock) {
  auto started =
      HttpServer::start(address,
                        {{"/metrics", [this](const HttpRequest&) { return metrics_page(); }},
                         {"/healthz",
                          [](const HttpRequest&) {
                            return HttpResponse{200, kText, "alive\n"};
                          }},
                         {"/readyz", [this](const HttpRequest&) { return ready_page(); }}},
                        clock);
  if (!started) return tl::unexpected(started.error());
  server_ = std::move(*started);
  return {};
}

HttpResponse HttpEndpoint::metrics_page() const {
  if (!has_metrics_) return {503, kText, kStarting};
  return {200, std::string(kMetricsContentType), registry_.render()};
}

HttpResponse HttpEndpoint::ready_page() const {
  const rpc::ServerHealth::Snapshot now = health_.get();
  if (now.health == v1::HEALTH_SERVING) return {200, kText, "serving\n"};
  if (now.health == v1::HEALTH_STARTING) return {503, kText, kStarting};
  return {503, kText, now.reason + "\n"};
}

}  // namespace berth
