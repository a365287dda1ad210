// One call of the Directory service, again and again: as a unary call or as a message on its
// member's Link, with the same request and the same answer.
#pragma once

#include <functional>
#include <vector>

#include "common/rpc_status.h"
#include "tests/bench/rpc/member.h"
#include "tests/bench/rpc/unary_call.h"

namespace berth::bench {

enum class Api : uint8_t { kUnary, kLink };

// Sizes of a request and of its answer, as encoded.
struct MessageSizes {
  size_t request_bytes = 0;
  size_t answer_bytes = 0;
};

// Of the calls that one flow makes, in order. Off while something is measured: sizes cost time.
struct MessageLog {
  bool is_on = false;
  std::vector<MessageSizes> calls;
};

// Where each method's messages are.
#define BERTH_BENCH_METHOD(Name, field)                                                    \
  struct Name##Method {                                                                    \
    using Request = v1::Name##Request;                                                     \
    using Response = v1::Name##Response;                                                   \
    static constexpr auto kPrepare = &v1::Directory::Stub::PrepareAsync##Name;             \
    static Request& in(v1::LinkRequest& message) { return *message.mutable_##field(); }    \
    static bool is_in(const v1::LinkResponse& message) { return message.has_##field(); }   \
    static const Response& of(const v1::LinkResponse& message) { return message.field(); } \
  }
BERTH_BENCH_METHOD(Probe, probe);
BERTH_BENCH_METHOD(Acquire, acquire);
BERTH_BENCH_METHOD(Release, release);
BERTH_BENCH_METHOD(Reserve, reserve);
BERTH_BENCH_METHOD(Commit, commit);
#undef BERTH_BENCH_METHOD

template <class Method>
class DirectoryCall final : public LinkAnswer {
 public:
  using Response = typename Method::Response;
  using Done = std::function<void(const Response&)>;
  using Failed = std::function<void(const Error&)>;

  DirectoryCall(EventLoop& loop, Api api, MessageLog& log, Done done, Failed failed)
      : loop_(loop),
        api_(api),
        log_(log),
        done_(std::move(done)),
        failed_(std::move(failed)),
        unary_([this](const grpc::Status& status) { on_unary(status); }) {}
  ~DirectoryCall() override {
    if (linked_to_) linked_to_->remove_asker(slot_);
  }
  DirectoryCall(const DirectoryCall&) = delete;
  DirectoryCall& operator=(const DirectoryCall&) = delete;

  // What is filled in before start(), but for the caller.
  typename Method::Request& request() { return Method::in(message_); }

  // On a Link a call stays with the member that it had first.
  void start(Member& member) {
    if (api_ == Api::kUnary) {
      *request().mutable_caller() = member.caller();
      unary_.start(loop_, member.stub(), Method::kPrepare, request());
      return;
    }
    if (!linked_to_) {
      linked_to_ = &member;
      slot_ = member.add_asker(*this);
    }
    member.ask(message_, slot_);
  }

 private:
  void on_unary(const grpc::Status& status) {
    if (!status.ok()) return failed_(error_from_status(status));
    if (log_.is_on)
      log_.calls.push_back({request().ByteSizeLong(), unary_.response.ByteSizeLong()});
    done_(unary_.response);
  }
  void on_answer(const v1::LinkResponse& answer) override {
    if (log_.is_on) log_.calls.push_back({message_.ByteSizeLong(), answer.ByteSizeLong()});
    if (Method::is_in(answer)) return done_(Method::of(answer));
    failed_(answer.has_error() ? error_from_details(answer.error())
                               : Error{Reason::kInternal, "an answer of another kind"});
  }
  void on_link_ended(const Error& why) override { failed_(why); }

  EventLoop& loop_;
  const Api api_;
  MessageLog& log_;
  const Done done_;
  const Failed failed_;
  v1::LinkRequest message_;
  UnaryCall<typename Method::Request, Response> unary_;
  Member* linked_to_ = nullptr;
  uint64_t slot_ = 0;
};

}  // namespace berth::bench
