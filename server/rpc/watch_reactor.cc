#include "server/rpc/watch_reactor.h"

#include "common/rpc_status.h"

namespace berth::rpc {
namespace {

void add_event(v1::WatchEventsResponse& response, const NumberedEvent& numbered) {
  const Event& event = numbered.event;
  v1::Event& out = *response.add_events();
  out.set_sequence(numbered.sequence);
  out.set_unix_ms(static_cast<uint64_t>(numbered.wall_millis));
  out.set_kind(std::string(name_of(event.kind)));
  out.set_session(event.session.value());
  out.set_pool(event.pool.value());
  out.set_replica(event.replica.value());
  out.set_count(event.count);
  out.set_lease(event.lease.value());
  out.set_reason(event.reason);
  out.set_namespace_id(event.namespace_id.value());
}

}  // namespace

WatchReactor::WatchReactor(Backend& backend, const v1::WatchEventsRequest& request)
    : backend_(backend),
      stops_at_end_(request.stop_at_end()),
      epoch_(request.epoch()),
      from_(request.from_sequence()) {
  const EventLog& log = backend.sequencer.events();
  // "From now on" is decided here, not when the first event comes.
  if (from_ == 0) from_ = log.read(log.epoch(), 0, 0).next;
  if (epoch_ == 0) epoch_ = log.epoch();
}

WatchReactor* WatchReactor::start(Backend& backend, const v1::WatchEventsRequest& request) {
  auto stream = std::make_shared<WatchReactor>(backend, request);
  stream->self_ = stream;
  // So that the peer knows that it misses nothing from now on.
  stream->StartSendInitialMetadata();
  if (const auto admitted = backend.streams.admit(stream); !admitted) {
    stream->end(admitted.error());
  } else if (const auto watched = backend.sequencer.events().watch(stream); !watched) {
    stream->end(watched.error());
  } else {
    stream->pump();
  }
  return stream.get();
}

void WatchReactor::on_events() {
  {
    const std::lock_guard lock(mutex_);
    has_more_ = true;
    if (is_busy_ || has_ended_) return;
  }
  pump();
}

void WatchReactor::pump() {
  Epoch epoch = 0;
  uint64_t from = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_busy_ || has_ended_) return;
    is_busy_ = true;
    has_more_ = false;
    epoch = epoch_;
    from = from_;
  }
  for (;;) {
    const auto page = backend_.sequencer.events().read(epoch, from, kEventsPerMessageMax);
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_) return;
      epoch = epoch_ = page.epoch;
      from = from_ = page.next;
      if (!page.events.empty() || page.gap) return write(page);
      if (!stops_at_end_) {
        is_busy_ = has_more_;
        has_more_ = false;
        if (!is_busy_) return;
        continue;
      }
    }
    return finish(grpc::Status::OK);
  }
}

void WatchReactor::write(const EventLog::Page& page) {
  response_.Clear();
  response_.set_epoch(page.epoch);
  response_.set_gap(page.gap);
  for (const NumberedEvent& event : page.events) add_event(response_, event);
  is_writing_ = true;
  StartWrite(&response_);
}

void WatchReactor::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    is_busy_ = is_writing_ = false;
    if (has_ended_) return Finish(end_status_);
  }
  if (ok)
    pump();
  else
    finish(grpc::Status::CANCELLED);
}

void WatchReactor::end(const Error& why) { finish(status_from_error(why)); }

void WatchReactor::finish(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    end_status_ = status;
    // With a write in flight the call is finished once that is done.
    if (!is_writing_) Finish(status);
  }
  backend_.streams.forget(this);
}

void WatchReactor::OnCancel() { finish(grpc::Status::CANCELLED); }

void WatchReactor::OnDone() {
  // Whoever finished the call, on whatever thread, has let go of it.
  { const std::lock_guard lock(mutex_); }
  self_.reset();
}

}  // namespace berth::rpc
