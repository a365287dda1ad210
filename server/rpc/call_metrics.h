// Counts and times every call. Calls are seen by one interceptor, except those of the methods that
// are called most: an interceptor sends each step of a call through gRPC's queue once more, so they
// count themselves (call_messages.h, link_reactor.h), and so do the requests on a Link.
//
// Labels are closed sets: the methods of our services ("Reserve"), the requests of Link
// ("link:reserve"), and the names of results ("ok", or a gRPC code).
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/v1/directory.pb.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/metrics_registry.h"

namespace berth::rpc {

class CallMetrics {
 public:
  CallMetrics(MetricsRegistry& registry, const Clock& clock);

  // One method with its series, found once.
  struct Method {
    std::vector<Counter*> by_code;  // by gRPC's number of the code
    Histogram* seconds = nullptr;
    bool counts_itself = false;
  };

  // The caller counts this method's calls itself from here on. Before the server starts.
  const Method& take_over(std::string_view path);
  // By the path of a call, "/berth.v1.Directory/Reserve"; methods of others share one.
  const Method& method(std::string_view path) const;
  const Method& link_method(v1::LinkRequest::BodyCase asked) const;

  int64_t now_nanos() const { return clock_.monotonic_nanos(); }
  void count(const Method& method, int code) const;
  // The call began at `started_nanos` and ends now.
  void observe(const Method& method, int code, int64_t started_nanos) const;

  // Sees every call of a server. The server must not outlive this object.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> interceptor_factory();

 private:
  Method make_method(CounterFamily& calls, HistogramFamily& seconds, std::string_view label);

  const Clock& clock_;
  std::map<std::string, Method, std::less<>> by_path_;
  std::map<int, Method> by_link_request_;
  Method other_;
};

// The code of a refusal, zero for none.
template <class T>
int code_of(const Result<T>& result) {
  return result ? 0 : static_cast<int>(row_of(result.error().reason).code);
}

}  // namespace berth::rpc
