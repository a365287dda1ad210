#include "server/rpc/door.h"

#include <catch2/catch.hpp>

#include "server/rpc/protocol_version.h"
#include "tests/unit/rpc/translate_fixture.h"

namespace berth::testing {
namespace {

v1::Caller caller_of(SessionId session, const Token& token) {
  v1::Caller caller;
  caller.set_session(session.value());
  caller.set_token(rpc::bytes_of(token));
  caller.set_incarnation(3);
  return caller;
}

}  // namespace

TEST_CASE_METHOD(TranslateFixture, "a worker enters with its own token", "[rpc][door]") {
  const auto known = rpc::authenticate(directory, caller_of(kWorker, kWorkerToken));
  REQUIRE(known);
  CHECK(known->session == kWorker);
  CHECK(known->incarnation == 3);
}

TEST_CASE_METHOD(TranslateFixture, "nobody else enters", "[rpc][door]") {
  const auto reason = [&](const v1::Caller& caller) {
    return rpc::authenticate(directory, caller).error().reason;
  };
  CHECK(reason(caller_of(kWorker, {1, 3})) == Reason::kWrongToken);
  CHECK(reason(caller_of(kWorker, {2, 2})) == Reason::kWrongToken);
  CHECK(reason(caller_of(kClient, {3, 4})) == Reason::kPermissionDenied);
  CHECK(reason(caller_of(SessionId(5), kWorkerToken)) == Reason::kUnknownSession);
  CHECK(reason(caller_of(SessionId(), kWorkerToken)) == Reason::kInvalidArgument);
  CHECK(reason(caller_of(kWorker, {})) == Reason::kInvalidArgument);
  v1::Caller truncated = caller_of(kWorker, kWorkerToken);
  truncated.set_token("12345678");
  CHECK(reason(truncated) == Reason::kInvalidArgument);
}

TEST_CASE("the newest version that both sides speak is in force", "[rpc][version]") {
  using rpc::negotiate;
  using rpc::ProtocolRange;
  const ProtocolRange ours{5, 4};
  CHECK(negotiate({5, 4}, ours) == 5u);
  CHECK(negotiate({5, 5}, ours) == 5u);
  CHECK(negotiate({4, 3}, ours) == 4u);  // a caller one version behind
  CHECK(negotiate({6, 5}, ours) == 5u);  // one version ahead
  CHECK(negotiate({9, 1}, ours) == 5u);

  const auto older = negotiate({3, 2}, ours);
  CHECK(older.error().reason == Reason::kUnsupportedVersion);
  CHECK_THAT(older.error().message, Catch::Contains("versions 2 to 3") &&
                                        Catch::Contains("versions 4 to 5") &&
                                        Catch::Contains("upgrade the caller"));
  const auto newer = negotiate({7, 6}, ours);
  CHECK(newer.error().reason == Reason::kUnsupportedVersion);
  CHECK_THAT(newer.error().message, Catch::Contains("upgrade the server"));

  CHECK(negotiate({0, 0}, ours).error().reason == Reason::kInvalidArgument);
  CHECK(negotiate({3, 4}, ours).error().reason == Reason::kInvalidArgument);
  CHECK(negotiate({5, 0}, ours).error().reason == Reason::kInvalidArgument);
}

}  // namespace berth::testing
