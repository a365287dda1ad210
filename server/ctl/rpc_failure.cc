#include "server/ctl/rpc_failure.h"

#include <algorithm>

#include "common/rpc_status.h"
#include "common/units.h"

namespace berth::ctl {
namespace {

// The wire name of the reason that a Berth server attached; empty when there is none.
std::string reason_of(const grpc::Status& status) {
  v1::StatusDetails details;
  if (!details.ParseFromString(status.error_details())) return "";
  for (const auto& detail : details.details()) {
    v1::ErrorInfo info;
    if (detail.type_url() == "type.googleapis.com/google.rpc.ErrorInfo" &&
        info.ParseFromString(detail.value()) && info.domain() == kErrorDomain)
      return info.reason();
  }
  return "";
}

std::string advice_on(std::string_view reason) {
  const auto row = std::find_if(kReasons.begin(), kReasons.end(),
                                [reason](const ReasonRow& r) { return r.name == reason; });
  return row == kReasons.end() ? "" : std::string(row->advice);
}

// gRPC puts its own story before what the operating system said.
std::string transport_words(const grpc::Status& status) {
  constexpr std::string_view kStory = "last error: UNKNOWN: ";
  const std::string& message = status.error_message();
  const size_t story = message.find(kStory);
  return story == std::string::npos ? message : message.substr(story + kStory.size());
}

Failure refused_with(const std::string& reason, const grpc::Status& status) {
  const bool not_now = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  return {not_now ? ExitCode::kNotReady : ExitCode::kRefused,
          std::string(not_now ? "not ready: " : "refused: ") + status.error_message() + " (" +
              reason + ")",
          advice_on(reason), reason};
}

}  // namespace

Failure failure_of(const grpc::Status& status, const std::string& address,
                   std::optional<Duration> timeout) {
  if (const std::string reason = reason_of(status); !reason.empty())
    return refused_with(reason, status);
  const std::string server = "server " + address;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return {ExitCode::kUnreachable, server + " cannot be reached: " + transport_words(status),
              "Start berthd there, or name its address with --server or BERTH_SERVER.", ""};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {ExitCode::kUnreachable,
              server + " did not answer" + (timeout ? " within " + format_duration(*timeout) : ""),
              "See whether berthd runs there and is not stopped; a longer --timeout waits longer.",
              ""};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {ExitCode::kRefused, server + " does not know this request: " + status.error_message(),
              "Name the address of a berthd that is as new as this berthctl.", ""};
    default:
      return {ExitCode::kRefused,
              "refused: " + status.error_message() + " (gRPC code " +
                  std::to_string(status.error_code()) + ", without a reason)",
              "", ""};
  }
}

}  // namespace berth::ctl
