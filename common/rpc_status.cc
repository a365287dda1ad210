#include "common/rpc_status.h"

#include <algorithm>
#include <optional>

#include "common/check.h"
#include "common/text.h"

namespace berth {
namespace {

constexpr std::string_view kErrorInfoType = "type.googleapis.com/google.rpc.ErrorInfo";

// What a bare code tells a caller to do.
Reason reason_of_code(int code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
      return Reason::kCancelled;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return Reason::kInvalidArgument;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Reason::kDeadlineExceeded;
    case grpc::StatusCode::NOT_FOUND:
      return Reason::kUnknownReplica;
    case grpc::StatusCode::ALREADY_EXISTS:
      return Reason::kIdInUse;
    case grpc::StatusCode::PERMISSION_DENIED:
      return Reason::kPermissionDenied;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Reason::kWrongToken;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Reason::kQueueFull;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return Reason::kReservationClosed;
    case grpc::StatusCode::UNIMPLEMENTED:
      return Reason::kUnsupportedVersion;
    case grpc::StatusCode::DATA_LOSS:
      return Reason::kStoreCorrupt;
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::UNAVAILABLE:
      return Reason::kUnavailable;
    default:
      return Reason::kInternal;
  }
}

std::optional<Reason> reason_of_name(std::string_view name) {
  const auto row = std::find_if(kReasons.begin(), kReasons.end(),
                                [&](const ReasonRow& r) { return r.name == name; });
  if (row == kReasons.end()) return std::nullopt;
  return row->reason;
}

// Cut at a UTF-8 boundary: protobuf strings must be valid, and so must gRPC messages.
std::string cut_message(const std::string& message) {
  if (message.size() <= kStatusMessageBytesMax) return message;
  size_t end = kStatusMessageBytesMax - 3;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return message.substr(0, end) + "...";
}

std::optional<v1::ErrorInfo> error_info_in(const v1::StatusDetails& details) {
  for (const google::protobuf::Any& detail : details.details()) {
    v1::ErrorInfo info;
    if (detail.type_url() == kErrorInfoType && info.ParseFromString(detail.value()) &&
        info.domain() == kErrorDomain)
      return info;
  }
  return std::nullopt;
}

std::optional<v1::StatusDetails> details_in(const grpc::Status& status) {
  v1::StatusDetails details;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details()))
    return std::nullopt;
  return details;
}

Error error_from(int code, const std::string& message, const std::optional<v1::ErrorInfo>& info) {
  if (!info) return {reason_of_code(code), message};
  if (const auto reason = reason_of_name(info->reason())) return {*reason, message};
  return {reason_of_code(code), message + " (reason " + quote(info->reason(), 64) + ")"};
}

}  // namespace

v1::StatusDetails details_from_error(const Error& error, const ErrorMetadata& metadata) {
  const ReasonRow& row = row_of(error.reason);
  v1::ErrorInfo info;
  info.set_reason(std::string(row.name));
  info.set_domain(std::string(kErrorDomain));
  for (const auto& [key, value] : metadata) (*info.mutable_metadata())[key] = value;
  v1::StatusDetails details;
  details.set_code(static_cast<int>(row.code));
  details.set_message(cut_message(error.message));
  google::protobuf::Any& detail = *details.add_details();
  detail.set_type_url(std::string(kErrorInfoType));
  detail.set_value(info.SerializeAsString());
  return details;
}

grpc::Status status_from_error(const Error& error, const ErrorMetadata& metadata) {
  const v1::StatusDetails details = details_from_error(error, metadata);
  return grpc::Status(static_cast<grpc::StatusCode>(details.code()), details.message(),
                      details.SerializeAsString());
}

Error error_from_details(const v1::StatusDetails& details) {
  return error_from(details.code(), details.message(), error_info_in(details));
}

Error error_from_status(const grpc::Status& status) {
  BERTH_CHECK(!status.ok(), "an OK status is no error");
  const auto details = details_in(status);
  return error_from(status.error_code(), status.error_message(),
                    details ? error_info_in(*details) : std::nullopt);
}

ErrorMetadata metadata_from_status(const grpc::Status& status) {
  const auto details = details_in(status);
  const auto info = details ? error_info_in(*details) : std::nullopt;
  if (!info) return {};
  return ErrorMetadata(info->metadata().begin(), info->metadata().end());
}

}  // namespace berth
