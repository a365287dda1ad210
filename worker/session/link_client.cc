#include "worker/session/link_client.h"

namespace berth::worker {
namespace {
constexpr Duration kOpenSessionWithin = seconds(10);
}  // namespace

struct LinkClient::OpenCall {
  grpc::ClientContext context;
  v1::OpenSessionRequest request;
  v1::OpenSessionResponse response;
};

LinkClient::~LinkClient() { stop(); }

void LinkClient::stop() {
  ConnectionId connection;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    connection = connection_;
  }
  end_connection(connection);
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return calls_ == 0; });
}

bool LinkClient::begin_call() {
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return false;
  ++calls_;
  return true;
}

void LinkClient::end_call() {
  const std::lock_guard lock(mutex_);
  --calls_;
  idle_.notify_all();
}

template <class Call>
std::shared_ptr<Call> LinkClient::counted(std::unique_ptr<Call> call) {
  return {call.release(), [this](Call* done) {
            std::unique_ptr<Call>(done).reset();
            end_call();
          }};
}

v1::Directory::Stub* LinkClient::stub_of(ConnectionId connection) {
  ConnectionId earlier;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return nullptr;
    if (connection_ == connection && stub_) return stub_.get();
    earlier = connection_;
  }
  end_connection(earlier);
  ChannelOptions options;
  options.exposure = exposure_;
  options.own_connection = true;
  const auto channel = make_channel("worker.server", server_, options);
  if (!channel) {
    failed(connection, channel.error());
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  connection_ = connection;
  stub_ = v1::Directory::NewStub(*channel);
  return stub_.get();
}

void LinkClient::failed(ConnectionId connection, const Error& error) {
  host_.feed([&](Agent& agent, Time now) { agent.connection_failed(connection, error, now); });
}

void LinkClient::perform(CallOpenSession& action) {
  v1::Directory::Stub* stub = stub_of(action.connection);
  if (!stub || !begin_call()) return;
  auto call = counted(std::make_unique<OpenCall>());
  call->request = std::move(action.request);
  set_deadline(call->context, kOpenSessionWithin);
  bool is_stopped = false;
  auto present = call;  // then the earlier one, which goes when the lock is free again
  {
    const std::lock_guard lock(mutex_);
    open_call_.swap(present);
    is_stopped = is_stopped_;
  }
  if (is_stopped) call->context.TryCancel();  // stop() has looked already, and waits
  stub->async()->OpenSession(
      &call->context, &call->request, &call->response,
      [this, call, connection = action.connection](const grpc::Status& status) {
        Result<v1::OpenSessionResponse> answer = std::move(call->response);
        if (!status.ok()) answer = tl::unexpected(error_from_status(status));
        host_.feed([&](Agent& agent, Time now) { agent.session_opened(connection, answer, now); });
      });
}

void LinkClient::perform(OpenReattach& action) {
  v1::Directory::Stub* stub = stub_of(action.connection);
  if (!stub || !begin_call()) return;
  const ConnectionId connection = action.connection;
  auto stream = counted(std::make_unique<ReattachStream>(
      [this, connection](const v1::ReattachResponse& message) {
        host_.feed(
            [&](Agent& agent, Time now) { agent.reattach_received(connection, message, now); });
      },
      [this, connection](const Error& error) {
        // Its regular end comes after `done`, when the agent no longer listens to it.
        host_.feed([&](Agent& agent, Time now) { agent.reattach_ended(connection, error, now); });
      }));
  stub->async()->Reattach(&stream->context(), stream.get());
  bool is_stopped = false;
  auto present = stream;  // then the earlier one, which goes when the lock is free again
  {
    const std::lock_guard lock(mutex_);
    reattach_.swap(present);
    is_stopped = is_stopped_;
  }
  stream->start(stream);
  if (is_stopped) stream->cancel();  // stop() has looked already, and waits
}

void LinkClient::perform(SendReattach& action) {
  std::shared_ptr<ReattachStream> stream;
  {
    const std::lock_guard lock(mutex_);
    if (action.connection == connection_) stream = reattach_;
  }
  if (stream) stream->write(std::move(action.message));
}

void LinkClient::perform(EndReattach& action) {
  std::shared_ptr<ReattachStream> stream;
  {
    const std::lock_guard lock(mutex_);
    if (action.connection == connection_) stream = reattach_;
  }
  if (stream) stream->writes_done();
}

void LinkClient::perform(OpenLink& action) {
  v1::Directory::Stub* stub = stub_of(action.connection);
  if (!stub || !begin_call()) return;
  const ConnectionId connection = action.connection;
  auto stream = counted(std::make_unique<LinkStream>(
      [this, connection](const v1::LinkResponse& message) {
        host_.feed([&](Agent& agent, Time now) { agent.link_received(connection, message, now); });
      },
      [this, connection](const Error& error) { failed(connection, error); }));
  stub->async()->Link(&stream->context(), stream.get());
  bool is_stopped = false;
  auto present = stream;  // then the earlier one, which goes when the lock is free again
  {
    const std::lock_guard lock(mutex_);
    link_.swap(present);
    is_stopped = is_stopped_;
  }
  stream->start(stream);
  if (is_stopped) stream->cancel();  // stop() has looked already, and waits
}

void LinkClient::perform(SendLink& action) {
  std::shared_ptr<LinkStream> stream;
  {
    const std::lock_guard lock(mutex_);
    if (action.connection == connection_) stream = link_;
  }
  if (!stream) return;
  stream->write(std::move(action.message), action.urgency == Urgency::kSoon
                                               ? LinkStream::Place::kFront
                                               : LinkStream::Place::kBack);
}

void LinkClient::perform(CloseConnection& action) { end_connection(action.connection); }

void LinkClient::end_connection(ConnectionId connection) {
  std::shared_ptr<OpenCall> open_call;
  std::shared_ptr<ReattachStream> reattach;
  std::shared_ptr<LinkStream> link;
  {
    const std::lock_guard lock(mutex_);
    if (connection != connection_) return;
    open_call.swap(open_call_);
    reattach.swap(reattach_);
    link.swap(link_);
  }
  if (open_call) open_call->context.TryCancel();
  if (reattach) reattach->cancel();
  if (link) link->cancel();
}

}  // namespace berth::worker
