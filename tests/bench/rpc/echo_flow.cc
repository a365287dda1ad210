#include "tests/bench/rpc/echo_flow.h"

#include <algorithm>

#include "common/rpc_channel.h"

namespace berth::bench {
namespace {

constexpr Duration kConnectWithin = seconds(20);

// The payload that makes the message as long as wanted, if the rest of it allows that.
template <class Message>
size_t payload_for(Message message, size_t wanted_bytes) {
  for (size_t payload = wanted_bytes; payload > 0; --payload) {
    message.mutable_payload()->assign(payload, 'x');
    if (message.ByteSizeLong() <= wanted_bytes) return payload;
  }
  return 0;
}

class EchoFlow final : public Flow, EchoPeer::Asker {
 public:
  EchoFlow(EchoPeer& peer, Api api, const std::vector<RecordedCycle>& cycles)
      : peer_(peer), api_(api) {
    if (api == Api::kLink) request_.set_correlation(peer_.add_asker(*this));
    EchoResponse response;
    response.set_correlation(request_.correlation());
    for (const RecordedCycle& cycle : cycles) {
      cycles_.push_back({cycle.items, {}});
      for (const MessageSizes& call : cycle.calls) {
        const size_t answer = payload_for(response, call.answer_bytes);
        request_.set_payload_bytes(static_cast<uint32_t>(answer));
        cycles_.back().calls.push_back({payload_for(request_, call.request_bytes), answer});
      }
    }
  }
  ~EchoFlow() override {
    if (api_ == Api::kLink) peer_.remove_asker(request_.correlation());
  }

  void start() override {
    call_ = 0;
    call();
  }

 private:
  const MessageSizes& payloads() const { return cycles_[cycle_].calls[call_]; }
  void call() {
    request_.mutable_payload()->resize(payloads().request_bytes, 'x');
    request_.set_payload_bytes(static_cast<uint32_t>(payloads().answer_bytes));
    if (api_ == Api::kLink) return peer_.ask(request_);
    unary_.start(peer_.loop(), peer_.stub(), &Echo::Stub::PrepareAsyncCall, request_);
  }
  void on_unary(const grpc::Status& status) {
    if (!status.ok()) return owner->on_failure(*this, {Reason::kUnavailable, "the echo failed"});
    on_answer(unary_.response);
  }
  void on_answer(const EchoResponse& answer) override {
    if (answer.payload().size() != payloads().answer_bytes)
      return owner->on_failure(*this, {Reason::kInternal, "the echo is of another size"});
    if (++call_ < cycles_[cycle_].calls.size()) return call();
    const uint64_t items = cycles_[cycle_].items;
    cycle_ = (cycle_ + 1) % cycles_.size();
    end_cycle(items);
  }
  void on_stream_ended(const Error& why) override { owner->on_failure(*this, why); }

  EchoPeer& peer_;
  const Api api_;
  std::vector<RecordedCycle> cycles_;  // sizes are those of the payloads
  EchoRequest request_;
  size_t cycle_ = 0;
  size_t call_ = 0;
  UnaryCall<EchoRequest, EchoResponse> unary_{
      [this](const grpc::Status& status) { on_unary(status); }};
};

}  // namespace

Result<std::unique_ptr<EchoPeer>> EchoPeer::connect(EventLoop& loop, const Address& server) {
  const auto channel = make_channel("echo server", server, {.own_connection = true});
  if (!channel) return tl::unexpected(channel.error());
  if (!(*channel)->WaitForConnected(deadline_in(kConnectWithin)))
    return refuse(Reason::kUnavailable, "the echo server does not answer at " + server.text());
  std::unique_ptr<EchoPeer> peer(new EchoPeer(loop));
  peer->stub_ = Echo::NewStub(*channel);
  const std::lock_guard lock(loop.mutex());
  peer->stream_.start(loop, *peer->stub_, &Echo::Stub::PrepareAsyncStream);
  return peer;
}

uint64_t EchoPeer::add_asker(Asker& asker) {
  const auto free = std::find(askers_.begin(), askers_.end(), nullptr);
  const auto slot = static_cast<uint64_t>(free - askers_.begin()) + 1;
  if (free == askers_.end()) askers_.push_back(nullptr);
  askers_[slot - 1] = &asker;
  return slot;
}

void EchoPeer::on_message(const EchoResponse& message) {
  const uint64_t slot = message.correlation();
  if (slot > 0 && slot <= askers_.size() && askers_[slot - 1])
    askers_[slot - 1]->on_answer(message);
}

void EchoPeer::on_ended(const grpc::Status& status) {
  for (Asker* asker : askers_)
    if (asker)
      asker->on_stream_ended({Reason::kUnavailable, "the echo ended: " + status.error_message()});
}

std::unique_ptr<Flow> make_echo_flow(EchoPeer& peer, Api api,
                                     const std::vector<RecordedCycle>& cycles) {
  return std::make_unique<EchoFlow>(peer, api, cycles);
}

}  // namespace berth::bench
