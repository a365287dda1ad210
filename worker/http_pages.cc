#include "worker/http_pages.h"

namespace berth::worker {
namespace {

constexpr std::string_view kMedium = "cpu";  // the only one that this worker has so far

void collect(MetricSamples& samples, const AgentHost& host) {
  pool::LedgerUsage sum;
  uint64_t largest_hole = 0;
  for (const pool::LedgerUsage& usage : host.usage()) {
    sum.capacity_bytes += usage.capacity_bytes;
    sum.writing_bytes += usage.writing_bytes;
    sum.written_bytes += usage.written_bytes;
    sum.sealed_bytes += usage.sealed_bytes;
    sum.quarantined_bytes += usage.quarantined_bytes;
    sum.forgotten_bytes += usage.forgotten_bytes;
    sum.free_bytes += usage.free_bytes;
    sum.replicas += usage.replicas;
    sum.spans_out += usage.spans_out;
    largest_hole = std::max(largest_hole, usage.largest_hole_bytes);
  }
  const auto bytes = [&](std::string_view state, uint64_t value) {
    samples.gauge({"berth_worker_pool_bytes", "Pages of this worker's pools, by what they hold"},
                  {{"medium", kMedium}, {"state", state}}, static_cast<double>(value));
  };
  bytes("writing", sum.writing_bytes);
  bytes("written", sum.written_bytes);
  bytes("sealed", sum.sealed_bytes);
  bytes("quarantined", sum.quarantined_bytes);
  bytes("forgotten", sum.forgotten_bytes);
  bytes("free", sum.free_bytes);
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    samples.gauge({name, help}, {{"medium", kMedium}}, static_cast<double>(value));
  };
  gauge("berth_worker_pool_capacity_bytes", "Capacity of the registered pools", sum.capacity_bytes);
  gauge("berth_worker_largest_hole_bytes", "The longest contiguous free run", largest_hole);
  gauge("berth_worker_replicas", "Replicas that hold pages", sum.replicas);
  gauge("berth_worker_spans_out", "Spans that engines hold", sum.spans_out);
  const auto [clients, attached] = host.ask(
      [](const Agent& agent) { return std::pair(agent.client_count(), agent.is_attached()); });
  samples.gauge({"berth_worker_clients", "Engines that joined"}, {}, static_cast<double>(clients));
  samples.gauge({"berth_worker_attached", "1 while attached to berthd"}, {}, attached ? 1 : 0);
}

HttpResponse ready_page(const AgentHost& host) {
  const std::string stage =
      host.ask([](const Agent& agent) { return std::string(agent.stage_name()); });
  HttpResponse response;
  response.body = stage + "\n";
  response.status = stage == "attached" ? 200 : 503;
  return response;
}

}  // namespace

void add_worker_metrics(MetricsRegistry& registry, const AgentHost& host) {
  registry.add_collector([&host](MetricSamples& samples) { collect(samples, host); });
}

HttpRoutes worker_pages(const MetricsRegistry& registry, const AgentHost& host) {
  return {
      {"/metrics",
       [&](const HttpRequest&) {
         return HttpResponse{200, std::string(kMetricsContentType), registry.render()};
       }},
      {"/healthz",
       [](const HttpRequest&) {
         return HttpResponse{200, "text/plain; charset=utf-8", "alive\n"};
       }},
      {"/readyz", [&](const HttpRequest&) { return ready_page(host); }},
  };
}

}  // namespace berth::worker
