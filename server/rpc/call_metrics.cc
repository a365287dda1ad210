#include "server/rpc/call_metrics.h"

#include <google/protobuf/descriptor.h>

#include <optional>

#include "berth/v1/admin.pb.h"
#include "common/check.h"

namespace berth::rpc {
namespace {

namespace experimental = grpc::experimental;

// By gRPC's number.
constexpr std::array<std::string_view, 17> kResults{
    "ok",        "cancelled",      "unknown",           "invalid_argument",   "deadline_exceeded",
    "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
    "aborted",   "out_of_range",   "unimplemented",     "internal",           "unavailable",
    "data_loss", "unauthenticated"};

std::vector<const google::protobuf::ServiceDescriptor*> services() {
  return {v1::LinkRequest::descriptor()->file()->FindServiceByName("Directory"),
          v1::GetStatusRequest::descriptor()->file()->FindServiceByName("Admin")};
}

const google::protobuf::OneofDescriptor* link_requests() {
  return v1::LinkRequest::descriptor()->FindOneofByName("body");
}

std::string link_label(const google::protobuf::FieldDescriptor& request) {
  return "link:" + std::string(request.name());
}

std::vector<std::string> method_labels() {
  std::vector<std::string> labels;
  for (const auto* service : services())
    for (int i = 0; i < service->method_count(); ++i) labels.push_back(service->method(i)->name());
  for (int i = 0; i < link_requests()->field_count(); ++i)
    labels.push_back(link_label(*link_requests()->field(i)));
  return labels;
}

// A stream lives as long as its peer: only how it ends is counted, not how long it took.
class CallInterceptor final : public experimental::Interceptor {
 public:
  CallInterceptor(const CallMetrics& metrics, const CallMetrics::Method& method, bool is_timed)
      : metrics_(metrics), method_(method) {
    if (is_timed) started_nanos_ = metrics.now_nanos();
  }

  void Intercept(experimental::InterceptorBatchMethods* batch) override {
    if (batch->QueryInterceptionHookPoint(experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      const int code = batch->GetSendStatus().error_code();
      if (started_nanos_)
        metrics_.observe(method_, code, *started_nanos_);
      else
        metrics_.count(method_, code);
    }
    batch->Proceed();
  }

 private:
  const CallMetrics& metrics_;
  const CallMetrics::Method& method_;
  std::optional<int64_t> started_nanos_;
};

class CallInterceptorFactory final : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallInterceptorFactory(const CallMetrics& metrics) : metrics_(metrics) {}

  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    const CallMetrics::Method& method = metrics_.method(info->method());
    if (method.counts_itself) return nullptr;
    const bool is_timed = info->type() == experimental::ServerRpcInfo::Type::UNARY;
    // gRPC takes ownership.
    return std::make_unique<CallInterceptor>(metrics_, method, is_timed).release();
  }

 private:
  const CallMetrics& metrics_;
};

}  // namespace

CallMetrics::CallMetrics(MetricsRegistry& registry, const Clock& clock) : clock_(clock) {
  const LabelSet methods{"method", method_labels()};
  auto& calls = registry.counters(
      {"berth_rpc_calls_total", "Calls and requests on Links that ended, by method and result."},
      {methods, {"result", {kResults.begin(), kResults.end()}}});
  auto& seconds = registry.histograms(
      {"berth_rpc_seconds",
       "From the request's arrival to its answer, by method; streams excepted."},
      {methods}, latency_buckets());
  for (const auto* service : services())
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string& name = service->method(i)->name();
      by_path_.emplace("/" + service->full_name() + "/" + name, make_method(calls, seconds, name));
    }
  for (int i = 0; i < link_requests()->field_count(); ++i) {
    const auto& request = *link_requests()->field(i);
    by_link_request_.emplace(request.number(), make_method(calls, seconds, link_label(request)));
  }
  other_ = make_method(calls, seconds, kOtherLabelValue);
}

CallMetrics::Method CallMetrics::make_method(CounterFamily& calls, HistogramFamily& seconds,
                                             std::string_view label) {
  Method method;
  for (const std::string_view result : kResults)
    method.by_code.push_back(&calls.with({label, result}));
  method.seconds = &seconds.with({label});
  return method;
}

const CallMetrics::Method& CallMetrics::take_over(std::string_view path) {
  const auto it = by_path_.find(path);
  BERTH_CHECK(it != by_path_.end(), "only methods of ours can be taken over");
  it->second.counts_itself = true;
  return it->second;
}

const CallMetrics::Method& CallMetrics::method(std::string_view path) const {
  const auto it = by_path_.find(path);
  return it == by_path_.end() ? other_ : it->second;
}

const CallMetrics::Method& CallMetrics::link_method(v1::LinkRequest::BodyCase asked) const {
  const auto it = by_link_request_.find(static_cast<int>(asked));
  return it == by_link_request_.end() ? other_ : it->second;
}

void CallMetrics::count(const Method& method, int code) const {
  const size_t known = code >= 0 && static_cast<size_t>(code) < kResults.size()
                           ? static_cast<size_t>(code)
                           : static_cast<size_t>(grpc::StatusCode::UNKNOWN);
  method.by_code[known]->add();
}

void CallMetrics::observe(const Method& method, int code, int64_t started_nanos) const {
  count(method, code);
  method.seconds->observe(static_cast<double>(now_nanos() - started_nanos) / 1e9);
}

std::unique_ptr<experimental::ServerInterceptorFactoryInterface>
CallMetrics::interceptor_factory() {
  return std::make_unique<CallInterceptorFactory>(*this);
}

}  // namespace berth::rpc
