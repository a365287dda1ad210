#include "tests/bench/rpc/echo_service.h"

#include <poll.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "common/rpc_server.h"
#include "common/signals.h"

namespace berth::bench {
namespace {

void answer(const EchoRequest& request, EchoResponse& response) {
  response.set_correlation(request.correlation());
  response.mutable_payload()->assign(request.payload(), 0, request.payload_bytes());
  response.mutable_payload()->resize(request.payload_bytes());
}

// Reads on while answers are being written: a floor that waited for itself would flatter.
class EchoStream final : public grpc::ServerBidiReactor<EchoRequest, EchoResponse> {
 public:
  EchoStream() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      if (!ok) return end();
      answers_.emplace_back();
      answer(request_, answers_.back());
      if (answers_.size() == 1) StartWrite(&answers_.front());
    }
    StartRead(&request_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    answers_.pop_front();
    if (!ok) return end();
    if (!answers_.empty()) StartWrite(&answers_.front());
  }
  void OnDone() override { delete this; }

 private:
  void end() {  // under mutex_
    if (!std::exchange(has_ended_, true)) Finish(grpc::Status::OK);
  }

  EchoRequest request_;
  std::mutex mutex_;                  // guards what follows
  std::deque<EchoResponse> answers_;  // the first one is being written
  bool has_ended_ = false;
};

class EchoService final : public Echo::CallbackService {
 public:
  grpc::ServerUnaryReactor* Call(grpc::CallbackServerContext* call, const EchoRequest* request,
                                 EchoResponse* response) override {
    answer(*request, *response);
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerBidiReactor<EchoRequest, EchoResponse>* Stream(
      grpc::CallbackServerContext*) override {
    return std::make_unique<EchoStream>().release();  // until OnDone
  }
};

int fail(const Error& error) {
  std::fprintf(stderr, "berth-bench: echo server: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int run_echo_server(const std::vector<std::string>& addresses) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto signals = block_stop_signals();
  if (!signals) return fail(signals.error());
  std::vector<RpcListener> listeners;
  for (const std::string& text : addresses) {
    const auto address = parse_address("--echo-server", text);
    if (!address) return fail(address.error());
    listeners.push_back({.name = "--echo-server", .address = *address});
  }
  EchoService service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  auto started = start_rpc_server(builder, listeners);
  if (!started) return fail(started.error());
  pollfd watched{signals->get(), POLLIN, 0};
  while (::poll(&watched, 1, -1) < 0) {
  }
  started->shut_down(seconds(1));
  started->server->Wait();
  return 0;
}

}  // namespace berth::bench
