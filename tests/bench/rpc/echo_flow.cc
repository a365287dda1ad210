#include "tests/bench/rpc/echo_flow.h"

#include <algorithm>
#include <utility>

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
  EchoFlow(EchoPeer& peer, Api api, uint64_t items, const std::vector<MessageSizes>& sizes)
      : peer_(peer), api_(api), items_(items) {
    if (api == Api::kLink) slot_ = peer_.add_asker(*this);
    for (const MessageSizes& size : sizes) {
      EchoRequest& request = requests_.emplace_back();
      EchoResponse response;
      request.set_correlation(slot_);
      response.set_correlation(slot_);
      request.set_payload_bytes(
          static_cast<uint32_t>(payload_for(std::move(response), size.answer_bytes)));
      request.set_payload(std::string(payload_for(request, size.request_bytes), 'x'));
    }
  }
  ~EchoFlow() override {
    if (slot_ != 0) peer_.remove_asker(slot_);
  }

  void start() override {
    at_ = 0;
    call();
  }

 private:
  void call() {
    if (api_ == Api::kLink) return peer_.ask(requests_[at_]);
    unary_.start(peer_.loop(), peer_.stub(), &Echo::Stub::PrepareAsyncCall, requests_[at_]);
  }
  void on_unary(const grpc::Status& status) {
    if (!status.ok()) return owner->on_failure(*this, {Reason::kUnavailable, "the echo failed"});
    on_answer(unary_.response);
  }
  void on_answer(const EchoResponse& answer) override {
    if (answer.payload().size() != requests_[at_].payload_bytes())
      return owner->on_failure(*this, {Reason::kInternal, "the echo is of another size"});
    if (++at_ < requests_.size()) return call();
    owner->on_cycle(*this, items_);
  }
  void on_stream_ended(const Error& why) override { owner->on_failure(*this, why); }

  EchoPeer& peer_;
  const Api api_;
  const uint64_t items_;
  std::vector<EchoRequest> requests_;
  size_t at_ = 0;
  uint64_t slot_ = 0;
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

std::unique_ptr<Flow> make_echo_flow(EchoPeer& peer, Api api, uint64_t items,
                                     const std::vector<MessageSizes>& sizes) {
  return std::make_unique<EchoFlow>(peer, api, items, sizes);
}

}  // namespace berth::bench
