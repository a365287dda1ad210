// A call of the Admin service that must not fail: it waits for the server, and what it says is an
// Error for whoever runs the bench.
#pragma once

#include <grpcpp/client_context.h>

#include "berth/v1/admin.grpc.pb.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"

namespace berth::bench {

template <class Request, class Response>
Result<Response> ask_admin(v1::Admin::Stub& stub,
                           grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                           const Request& request) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  set_deadline(context, seconds(60));
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return tl::unexpected(error_from_status(status));
  return response;
}

// Evicts what a namespace holds and waits until its last page is free.
Result<> evict_namespace(v1::Admin::Stub& stub, const std::string& name);

}  // namespace berth::bench
