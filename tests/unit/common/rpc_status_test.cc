// Errors on the wire: every reason survives the way, and foreign statuses still mean something.
#include "common/rpc_status.h"

#include <catch2/catch.hpp>

namespace berth {

TEST_CASE("every reason comes back as itself, with its code and message", "[common][rpc]") {
  for (const ReasonRow& row : kReasons) {
    CAPTURE(row.name);
    const Error error{row.reason, "about " + std::string(row.name)};
    const grpc::Status status = status_from_error(error);
    CHECK(static_cast<int>(status.error_code()) == static_cast<int>(row.code));
    CHECK(error_from_status(status) == error);
    CHECK(error_from_details(details_from_error(error)) == error);
  }
}

TEST_CASE("metadata travels with the reason", "[common][rpc]") {
  const grpc::Status status = status_from_error({Reason::kNamespaceMismatch, "dtype differs"},
                                                {{"field", "dtype"}, {"was", "bf16"}});
  CHECK(metadata_from_status(status) == ErrorMetadata{{"field", "dtype"}, {"was", "bf16"}});
  CHECK(metadata_from_status(grpc::Status(grpc::StatusCode::INTERNAL, "x")).empty());
}

TEST_CASE("the details are a google.rpc.Status with one ErrorInfo", "[common][rpc]") {
  const v1::StatusDetails details = details_from_error({Reason::kQueueFull, "busy"});
  CHECK(details.code() == 8);
  REQUIRE(details.details_size() == 1);
  CHECK(details.details(0).type_url() == "type.googleapis.com/google.rpc.ErrorInfo");
  v1::ErrorInfo info;
  REQUIRE(info.ParseFromString(details.details(0).value()));
  CHECK(info.reason() == "queue_full");
  CHECK(info.domain() == "berth");
}

TEST_CASE("the transport's own errors map by code", "[common][rpc]") {
  const auto [code, reason] = GENERATE(table<grpc::StatusCode, Reason>({
      {grpc::StatusCode::UNAVAILABLE, Reason::kUnavailable},
      {grpc::StatusCode::DEADLINE_EXCEEDED, Reason::kDeadlineExceeded},
      {grpc::StatusCode::CANCELLED, Reason::kCancelled},
      {grpc::StatusCode::UNIMPLEMENTED, Reason::kUnsupportedVersion},
      {grpc::StatusCode::INVALID_ARGUMENT, Reason::kInvalidArgument},
      {grpc::StatusCode::RESOURCE_EXHAUSTED, Reason::kQueueFull},
      {grpc::StatusCode::UNAUTHENTICATED, Reason::kWrongToken},
      {grpc::StatusCode::ABORTED, Reason::kUnavailable},
      {grpc::StatusCode::UNKNOWN, Reason::kInternal},
  }));
  CHECK(error_from_status(grpc::Status(code, "said the transport")) ==
        Error{reason, "said the transport"});
}

TEST_CASE("a reason that we do not know maps by code and is named", "[common][rpc]") {
  v1::StatusDetails details = details_from_error({Reason::kQueueFull, "later"});
  v1::ErrorInfo info;
  info.set_reason("moon_phase");
  info.set_domain("berth");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  CHECK(error_from_details(details) == Error{Reason::kQueueFull, "later (reason \"moon_phase\")"});
}

TEST_CASE("a reason of another domain is not taken for ours", "[common][rpc]") {
  v1::StatusDetails details = details_from_error({Reason::kSessionFenced, "go away"});
  v1::ErrorInfo info;
  info.set_reason("session_fenced");
  info.set_domain("elsewhere.example");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  details.set_code(grpc::StatusCode::UNAVAILABLE);
  CHECK(error_from_details(details).reason == Reason::kUnavailable);
}

TEST_CASE("broken details are ignored", "[common][rpc]") {
  const grpc::Status status(grpc::StatusCode::UNAVAILABLE, "gone", "\xff\xff not a message");
  CHECK(error_from_status(status) == Error{Reason::kUnavailable, "gone"});
}

TEST_CASE("a message too long for a trailer is cut between characters", "[common][rpc]") {
  std::string message(kStatusMessageBytesMax - 4, 'x');
  for (int i = 0; i < 100; ++i) message += "\xc3\xa9";
  const grpc::Status status = status_from_error({Reason::kInternal, message});
  const std::string cut = status.error_message();
  CHECK(cut.size() <= kStatusMessageBytesMax);
  CHECK(cut == std::string(kStatusMessageBytesMax - 4, 'x') + "...");
}

}  // namespace berth
