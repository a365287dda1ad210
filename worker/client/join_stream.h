// The Join stream of one join: the handshake (hello, welcome, descriptors, mapped) and the messages
// that follow. One thread opens and reads it; any thread may cancel it, which ends every wait at
// once.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "common/error.h"
#include "common/unique_fd.h"
#include "worker/client/attachment.h"
#include "worker/client/types.h"

namespace berth::client {

class JoinStream {
 public:
  explicit JoinStream(const ClientOptions& options) : options_(options) {}
  ~JoinStream();

  // Joins, or resumes `previous` when there is one. A worker that gives another session than asked
  // for means that the old one ended; the attachment then has a new Session. Errors: the worker's
  // refusal; kUnavailable when it cannot be reached; kIoError when a pool cannot be mapped;
  // kInternal when its welcome makes no sense. The wait for the worker is ended by cancel() only:
  // whoever opens also watches the time.
  Result<std::shared_ptr<Attachment>> open(const std::shared_ptr<Session>& previous);

  // Waits for the next message; none at the end of the stream.
  std::optional<v1::JoinResponse> read();
  // Fetches and maps a pool of another worker. Errors: kIoError, kUnavailable, kInternal; the join
  // goes on without it.
  Result<PoolMapping> fetch(const v1::JoinPoolAdded& added);
  // Says that the operation will not be handed out (any more).
  void send_poisoned(OperationNumber operation);

  void cancel() { context_.TryCancel(); }

 private:
  Result<v1::JoinWelcome> greet(const std::shared_ptr<Session>& previous);
  Result<std::shared_ptr<Attachment>> attach(const v1::JoinWelcome& welcome,
                                             const std::shared_ptr<Session>& previous);
  Result<> receive_pools(const v1::JoinWelcome& welcome, Attachment& attachment);
  Error why_it_ended();

  const ClientOptions& options_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Worker::StubInterface> stub_;
  std::unique_ptr<grpc::ClientReaderWriterInterface<v1::JoinRequest, v1::JoinResponse>> stream_;
  UniqueFd descriptor_socket_;  // open as long as the join lasts
};

}  // namespace berth::client
