// One unary call to the worker, and what its end says. Three ends matter: the worker answered, it
// refused, or nobody knows whether the request had an effect.
#pragma once

#include <grpcpp/grpcpp.h>

#include "common/error.h"
#include "common/rpc_channel.h"
#include "common/time.h"
#include "worker/client/attachment.h"

namespace berth::client {

enum class CallEnd : uint8_t {
  kAnswered,
  kRefused,  // by the worker; error says why
  kSilent,   // no answer in time, or the connection broke
};

struct CallOutcome {
  CallEnd end = CallEnd::kAnswered;
  Error error;
};

// What a refusal means for whoever sent the request.
enum class Refusal : uint8_t {
  kFinal,           // it had no effect and never will
  kBusy,            // it had no effect yet: repeat it soon
  kOutcomeUnknown,  // it may have had an effect, or may still have one
  kRejoin,          // this join is over; the session can be resumed
  kSessionOver,     // the session is over too
  kOutage,          // it had no effect, and the caller is told of an outage
};
Refusal refusal_of(Reason reason);

// Whether the request may have had an effect, or may still have one.
bool is_outcome_unknown(const CallOutcome& outcome);

// From the end of one call.
CallOutcome outcome_of(const grpc::Status& status);

template <class Request, class Response>
using Method = grpc::Status (v1::Worker::StubInterface::*)(grpc::ClientContext*, const Request&,
                                                           Response*);

template <class Request, class Response>
CallOutcome call(Attachment& attachment, Method<Request, Response> method, const Request& request,
                 Response* response, Duration deadline) {
  grpc::ClientContext context;
  set_deadline(context, deadline);
  return outcome_of(((*attachment.stub).*method)(&context, request, response));
}

}  // namespace berth::client
