// The one error type. Every refusal has a Reason, and each Reason has one row in kReasons: its wire
// name (ErrorInfo.reason, metric label, berthctl output), its gRPC code and what the caller should
// do about it. docs/errors.md is printed from this table. Wire names are never changed or reused.
//
// A new Reason is added only when some caller would act differently on it; detail for people goes
// into the message, which names the thing refused and the accepted form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace berth {

enum class Reason : uint8_t {
  kInvalidArgument,
  kInvalidConfig,
  kUnsupportedVersion,
  kUnknownNamespace,
  kUnknownSession,
  kUnknownPool,
  kUnknownReplica,
  kUnknownLease,
  kUnknownOperation,
  kWrongToken,
  kPermissionDenied,
  kStaleIncarnation,
  kStaleEpoch,
  kSessionFenced,
  kReattaching,
  kNameInUse,
  kNamespaceMismatch,
  kIdInUse,
  kOperationMismatch,
  kOperationInFlight,
  kOperationWindowFull,
  kReservationClosed,
  kStillMapped,
  kBudgetExceeded,
  kLimitReached,
  kQueueFull,
  kStoreDegraded,
  kStoreIncompatible,
  kStoreLocked,
  kStoreCorrupt,
  kUnavailable,
  kDeadlineExceeded,
  kRejoin,
  kCancelled,
  kIoError,
  kInternal,
};

// Canonical gRPC status codes, with gRPC's own numbers, so that the core needs no gRPC header.
enum class Code : uint8_t {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct ReasonRow {
  Reason reason;
  std::string_view name;
  Code code;
  std::string_view advice;  // one sentence for the caller
};

inline constexpr std::array kReasons{
    ReasonRow{Reason::kInvalidArgument, "invalid_argument", Code::kInvalidArgument,
              "Correct the field that the message names; a retry cannot help."},
    ReasonRow{Reason::kInvalidConfig, "invalid_config", Code::kInvalidArgument,
              "Correct the key that the message names; --check-config prints what is accepted."},
    ReasonRow{
        Reason::kUnsupportedVersion, "unsupported_version", Code::kFailedPrecondition,
        "Upgrade the older side: this server speaks its own protocol version and the one before."},
    ReasonRow{Reason::kUnknownNamespace, "unknown_namespace", Code::kNotFound,
              "Open the namespace, then retry."},
    ReasonRow{Reason::kUnknownSession, "unknown_session", Code::kNotFound,
              "Open a new session; the old one was closed or fenced."},
    ReasonRow{Reason::kUnknownPool, "unknown_pool", Code::kNotFound,
              "Register the pool, then retry."},
    ReasonRow{Reason::kUnknownReplica, "unknown_replica", Code::kNotFound, "Treat it as a miss."},
    ReasonRow{Reason::kUnknownLease, "unknown_lease", Code::kNotFound,
              "Stop reading: nothing is protected under this lease."},
    ReasonRow{Reason::kUnknownOperation, "unknown_operation", Code::kNotFound,
              "No answer is kept under this number: take a number above the low-water mark."},
    ReasonRow{Reason::kWrongToken, "wrong_token", Code::kUnauthenticated,
              "Present the token that OpenSession returned for this session."},
    ReasonRow{Reason::kPermissionDenied, "permission_denied", Code::kPermissionDenied,
              "This session does not own the thing named; use the owner's session."},
    ReasonRow{Reason::kStaleIncarnation, "stale_incarnation", Code::kAborted,
              "The session re-attached since; retry under its present incarnation."},
    ReasonRow{Reason::kStaleEpoch, "stale_epoch", Code::kAborted,
              "The server restarted since; re-attach, then retry the same operation number."},
    ReasonRow{Reason::kSessionFenced, "session_fenced", Code::kFailedPrecondition,
              "Stop using everything that this session held and open a new one."},
    ReasonRow{Reason::kReattaching, "reattaching", Code::kUnavailable,
              "Wait until the owner's ledger is reconciled, then retry."},
    ReasonRow{Reason::kNameInUse, "name_in_use", Code::kAlreadyExists,
              "A live worker has this name; stop it or choose another name."},
    ReasonRow{Reason::kNamespaceMismatch, "namespace_mismatch", Code::kFailedPrecondition,
              "A namespace never changes; register the new layout under another name."},
    ReasonRow{Reason::kIdInUse, "id_in_use", Code::kAlreadyExists, "Choose another name or id."},
    ReasonRow{Reason::kOperationMismatch, "operation_mismatch", Code::kInvalidArgument,
              "This operation number was used with other content; take the next number."},
    ReasonRow{Reason::kOperationInFlight, "operation_in_flight", Code::kUnavailable,
              "The same operation is still being worked on; wait and resolve it."},
    ReasonRow{Reason::kOperationWindowFull, "operation_window_full", Code::kResourceExhausted,
              "Raise the low-water mark by finishing earlier operations, then retry."},
    ReasonRow{Reason::kReservationClosed, "reservation_closed", Code::kFailedPrecondition,
              "The reservation was cancelled or is gone; abort it and treat the store as skipped."},
    ReasonRow{Reason::kStillMapped, "still_mapped", Code::kFailedPrecondition,
              "Wait until every importer has detached or is proven gone."},
    ReasonRow{Reason::kBudgetExceeded, "budget_exceeded", Code::kResourceExhausted,
              "Lower the request or raise the budget that the message names."},
    ReasonRow{Reason::kLimitReached, "limit_reached", Code::kResourceExhausted,
              "A configured bound was reached; close what is unused or raise the limit named."},
    ReasonRow{Reason::kQueueFull, "queue_full", Code::kResourceExhausted,
              "The server has more queued than it may; back off and retry."},
    ReasonRow{Reason::kStoreDegraded, "store_degraded", Code::kUnavailable,
              "The state directory cannot be written; free space or repair it, the server goes on "
              "by itself."},
    ReasonRow{Reason::kStoreIncompatible, "store_incompatible", Code::kFailedPrecondition,
              "The store was written by a newer berthd; run that version or restore a backup."},
    ReasonRow{Reason::kStoreLocked, "store_locked", Code::kFailedPrecondition,
              "Another berthd holds this state directory; stop it or use another directory."},
    ReasonRow{
        Reason::kStoreCorrupt, "store_corrupt", Code::kDataLoss,
        "The store does not read back as written; restore a backup or start an empty directory."},
    ReasonRow{Reason::kUnavailable, "unavailable", Code::kUnavailable,
              "Treat it as a miss; retry with back-off."},
    ReasonRow{Reason::kDeadlineExceeded, "deadline_exceeded", Code::kDeadlineExceeded,
              "The outcome is unknown; retry the same operation number or resolve it."},
    ReasonRow{
        Reason::kRejoin, "rejoin", Code::kAborted,
        "The worker restarted; drop its mappings, join again, and treat what was held as a miss."},
    ReasonRow{Reason::kCancelled, "cancelled", Code::kCancelled,
              "The server asked for this to stop; abort or release it and go on."},
    ReasonRow{Reason::kIoError, "io_error", Code::kUnavailable,
              "The medium or the operating system refused; the message holds what it said."},
    ReasonRow{Reason::kInternal, "internal", Code::kInternal,
              "A bug in Berth; report it with the log."},
};

namespace detail {
consteval bool reasons_match_enum() {
  for (size_t i = 0; i < kReasons.size(); ++i)
    if (kReasons[i].reason != static_cast<Reason>(i)) return false;
  return kReasons.size() == static_cast<size_t>(Reason::kInternal) + 1;
}
}  // namespace detail
static_assert(detail::reasons_match_enum(), "kReasons must list every Reason, in order");

constexpr const ReasonRow& row_of(Reason r) { return kReasons[static_cast<size_t>(r)]; }
constexpr std::string_view name_of(Reason r) { return row_of(r).name; }

struct Error {
  Reason reason = Reason::kInternal;
  std::string message;  // for people; names the thing refused

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> refuse(Reason reason, std::string message) {
  return tl::unexpected(Error{reason, std::move(message)});
}

}  // namespace berth
