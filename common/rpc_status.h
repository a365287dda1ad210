// Refusals on their way between processes. An Error becomes a gRPC status whose details hold its
// reason in google.rpc.ErrorInfo form (domain "berth"), and comes back as the same Error on the
// other side.
//
// Link carries refusals inline, as the StatusDetails message itself.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "berth/v1/error.pb.h"
#include "common/error.h"

namespace berth {

inline constexpr std::string_view kErrorDomain = "berth";
// Details travel in HTTP/2 trailers, which peers limit to 8 KiB; a message appears in them twice.
inline constexpr size_t kStatusMessageBytesMax = 2048;

using ErrorMetadata = std::map<std::string, std::string>;

// `metadata` is for programs: the bound that was passed, the field that differs.
v1::StatusDetails details_from_error(const Error& error, const ErrorMetadata& metadata = {});
grpc::Status status_from_error(const Error& error, const ErrorMetadata& metadata = {});

// The peer's reason when it is one of ours. Otherwise (the transport's own errors, a newer peer)
// the reason that its code stands for; one that we do not know is named in the message.
Error error_from_details(const v1::StatusDetails& details);
// `status` must not be OK.
Error error_from_status(const grpc::Status& status);

// The metadata that came with an error of ours; empty otherwise.
ErrorMetadata metadata_from_status(const grpc::Status& status);

}  // namespace berth
