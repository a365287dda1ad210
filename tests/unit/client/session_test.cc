// Poison, holds and debts of one client session.
#include "worker/client/session.h"

#include <catch2/catch.hpp>

namespace berth::client {
namespace {

Session make_session() { return Session(SessionId(7), "0123456789abcdef", 64); }
StopFlag make_flag() { return std::make_shared<std::atomic<bool>>(false); }

TEST_CASE("a cancel that overtakes its answer poisons the operation in flight",
          "[client][session]") {
  Session session = make_session();
  const OperationNumber number = *session.start_operation();
  CHECK(session.cancel(number));
  CHECK(session.answer_operation(number) == Answer::kPoisoned);
  CHECK(session.low_water() == number);
}

TEST_CASE("a cancel after the answer stops the open store and no other", "[client][session]") {
  Session session = make_session();
  const StopFlag first = make_flag();
  const StopFlag second = make_flag();
  for (const StopFlag& flag : {first, second}) {
    const OperationNumber number = *session.start_operation();
    REQUIRE(session.answer_operation(number) == Answer::kGood);
    session.hold_store(number, flag);
  }
  CHECK(session.cancel(2));
  CHECK_FALSE(first->load());
  CHECK(second->load());
}

TEST_CASE("a cancel of a store that was finished stops nothing", "[client][session]") {
  Session session = make_session();
  const OperationNumber number = *session.start_operation();
  session.answer_operation(number);
  session.hold_store(number, make_flag());
  session.drop_store(number);
  CHECK_FALSE(session.cancel(number));
}

TEST_CASE("a revoke finds the handle, or the load whose answer is on its way",
          "[client][session]") {
  Session session = make_session();
  const StopFlag held = make_flag();
  session.hold_load(900, held);
  CHECK(session.revoke(1, 900));
  CHECK(held->load());

  const OperationNumber in_flight = *session.start_operation();
  CHECK(session.revoke(in_flight, 901));
  CHECK(session.answer_operation(in_flight) == Answer::kPoisoned);
}

TEST_CASE("an abandoned operation keeps its number open until it is settled", "[client][session]") {
  Session session = make_session();
  const OperationNumber lost = *session.start_operation();
  const OperationNumber later = *session.start_operation();
  session.abandon_operation({lost, v1::LoadRequest()});
  session.answer_operation(later);
  CHECK(session.low_water() == lost - 1);
  CHECK(session.unsettled.size() == 1);
  CHECK_FALSE(session.cancel(lost));
  session.settle_abandoned(lost);
  CHECK(session.unsettled.empty());
  CHECK(session.low_water() == later);
}

TEST_CASE("a handle counts as out until its release is confirmed", "[client][session]") {
  Session session = make_session();
  session.hold_load(5, make_flag());
  CHECK(session.loads_out() == 1);
  session.drop_load(5);
  session.releases.push_back(5);
  CHECK(session.loads_out() == 1);
  session.releases.clear();
  CHECK(session.loads_out() == 0);
}

}  // namespace
}  // namespace berth::client
