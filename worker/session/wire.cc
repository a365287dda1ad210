#include "worker/session/wire.h"

namespace berth::worker {
namespace {

uint64_t read_big_endian(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = (value << 8) | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

void append_big_endian(std::string& bytes, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(static_cast<uint8_t>(value >> shift)));
  }
}

Reason reason_of_code(int code) {
  switch (code) {
    case 3:
      return Reason::kInvalidArgument;
    case 4:
      return Reason::kDeadlineExceeded;
    case 7:
      return Reason::kPermissionDenied;
    case 8:
      return Reason::kQueueFull;
    case 14:
      return Reason::kUnavailable;
    default:
      return Reason::kInternal;
  }
}

}  // namespace

Id128 id128_from_bytes(const std::string& bytes) {
  if (bytes.size() != 16) return {};
  return {read_big_endian(bytes, 0), read_big_endian(bytes, 8)};
}

std::string to_bytes(const Id128& id) {
  std::string bytes;
  append_big_endian(bytes, id.high);
  append_big_endian(bytes, id.low);
  return bytes;
}

Error error_from_wire(const v1::StatusDetails& status) {
  for (const auto& detail : status.details()) {
    v1::ErrorInfo info;
    if (!info.ParseFromString(detail.value())) continue;
    for (const ReasonRow& row : kReasons) {
      if (row.name == info.reason()) return {row.reason, status.message()};
    }
  }
  return {reason_of_code(status.code()), status.message()};
}

Refusal judge(const Error& error) {
  switch (error.reason) {
    case Reason::kStaleIncarnation:
    case Reason::kStaleEpoch:
    case Reason::kReattaching:
      return Refusal::kStale;
    case Reason::kUnknownSession:
    case Reason::kSessionFenced:
    case Reason::kWrongToken:
      return Refusal::kNoSession;
    case Reason::kUnavailable:
    case Reason::kStoreDegraded:
    case Reason::kQueueFull:
    case Reason::kDeadlineExceeded:
    case Reason::kOperationInFlight:
    case Reason::kOperationWindowFull:
    case Reason::kIoError:
    case Reason::kInternal:
      return Refusal::kAgain;
    default:
      return Refusal::kFinal;
  }
}

}  // namespace berth::worker
