// A caller of the floor: the same number of calls in a row as a cycle of the workload that it is
// the floor of, with requests and answers of the same sizes, through the same client code.
#pragma once

#include <memory>
#include <vector>

#include "berth/bench/echo.grpc.pb.h"
#include "tests/bench/rpc/flow.h"

namespace berth::bench {

// One connection to the echo server, with one stream on it.
class EchoPeer final : BidiStream<EchoRequest, EchoResponse>::Owner {
 public:
  class Asker {
   public:
    virtual ~Asker() = default;
    virtual void on_answer(const EchoResponse& answer) = 0;
    virtual void on_stream_ended(const Error& why) = 0;
  };

  // Errors: kUnavailable when nobody answers there.
  static Result<std::unique_ptr<EchoPeer>> connect(EventLoop& loop, const Address& server);

  EventLoop& loop() { return loop_; }
  Echo::Stub& stub() { return *stub_; }
  // Under the loop's mutex, as everything that follows. One request of a slot at a time.
  uint64_t add_asker(Asker& asker);
  void remove_asker(uint64_t slot) { askers_[slot - 1] = nullptr; }
  void ask(const EchoRequest& request) { stream_.write(request); }
  void cancel() { stream_.cancel(); }

 private:
  explicit EchoPeer(EventLoop& loop) : loop_(loop) {}
  void on_message(const EchoResponse& message) override;
  void on_ended(const grpc::Status& status) override;

  EventLoop& loop_;
  std::unique_ptr<Echo::Stub> stub_;
  BidiStream<EchoRequest, EchoResponse> stream_{*this};
  std::vector<Asker*> askers_;  // by slot - 1
};

// `cycles` is not empty.
std::unique_ptr<Flow> make_echo_flow(EchoPeer& peer, Api api,
                                     const std::vector<RecordedCycle>& cycles);

}  // namespace berth::bench
