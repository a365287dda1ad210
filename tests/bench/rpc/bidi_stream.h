// One bidirectional stream on the event loop: writes in order, one at a time, and reads as long as
// there is something to read.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_stream.h>

#include <deque>
#include <memory>
#include <optional>

#include "tests/bench/rpc/event_loop.h"

namespace berth::bench {

template <class Request, class Response>
class BidiStream {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_message(const Response& message) = 0;
    virtual void on_ended(const grpc::Status& status) = 0;
  };
  explicit BidiStream(Owner& owner) : owner_(owner) {}

  // Again only after on_ended().
  template <class Stub, class Prepare>
  void start(EventLoop& loop, Stub& stub, Prepare prepare) {
    loop_ = &loop;
    queue_.clear();
    is_open_ = is_writing_ = false;
    stream_.reset();  // lies in memory of the context's call
    context_.emplace();
    stream_ = (stub.*prepare)(&*context_, &loop.queue());
    stream_->StartCall(&started_);
  }
  // The message stays as it is until its answer has come.
  void write(const Request& message) { enqueue({&message, nullptr}); }
  void write(std::unique_ptr<Request> message) {
    const Request* content = message.get();
    enqueue({content, std::move(message)});
  }
  void cancel() {
    if (context_) context_->TryCancel();
  }

 private:
  struct Queued {
    const Request* message;
    std::unique_ptr<Request> kept;
  };

  void enqueue(Queued queued) {
    queue_.push_back(std::move(queued));
    write_next();
  }
  void write_next() {
    if (!is_open_ || is_writing_ || queue_.empty() || loop_->is_stopping()) return;
    is_writing_ = true;
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    grpc::WriteOptions options;
    if (!queue_.empty()) options.set_buffer_hint();  // the next one goes out with it
    stream_->Write(*next.message, options, &written_);
  }
  void read_next() { stream_->Read(&response_, &read_); }
  void end() {
    if (loop_->is_stopping()) return;
    is_open_ = false;
    stream_->Finish(&status_, &finished_);
  }

  void on_started(bool ok) {
    if (!ok || loop_->is_stopping()) return end();
    is_open_ = true;
    read_next();
    write_next();
  }
  void on_read(bool ok) {
    if (!ok || loop_->is_stopping()) return end();
    owner_.on_message(response_);
    read_next();
  }
  void on_written(bool) {
    is_writing_ = false;
    write_next();
  }
  void on_finished(bool) { owner_.on_ended(status_); }

  Owner& owner_;
  EventLoop* loop_ = nullptr;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  std::deque<Queued> queue_;
  bool is_open_ = false;
  bool is_writing_ = false;
  Response response_;
  grpc::Status status_;
  OwnedEvent<BidiStream> started_{*this, &BidiStream::on_started};
  OwnedEvent<BidiStream> read_{*this, &BidiStream::on_read};
  OwnedEvent<BidiStream> written_{*this, &BidiStream::on_written};
  OwnedEvent<BidiStream> finished_{*this, &BidiStream::on_finished};
};

}  // namespace berth::bench
