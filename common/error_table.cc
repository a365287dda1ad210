#include "common/error_table.h"

#include <string_view>

#include "common/error.h"

namespace berth {
namespace {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

}  // namespace

std::string render_reasons_markdown() {
  std::string table = "| reason | gRPC code | what to do |\n| --- | --- | --- |\n";
  for (const ReasonRow& row : kReasons) {
    table += "| `";
    table += row.name;
    table += "` | ";
    table += name_of(row.code);
    table += " | ";
    table += row.advice;
    table += " |\n";
  }
  return table;
}

}  // namespace berth
