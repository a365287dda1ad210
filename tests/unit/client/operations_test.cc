// Operation numbers: the low-water mark and the bound of the window.
#include "worker/client/operations.h"

#include <catch2/catch.hpp>

namespace berth::client {
namespace {

TEST_CASE("operation numbers start at one and rise by one", "[client][operations]") {
  OperationWindow window(8);
  CHECK(window.low_water() == 0);
  CHECK(window.take() == 1);
  CHECK(window.take() == 2);
  CHECK(window.low_water() == 0);
}

TEST_CASE("the low-water mark waits for the lowest open number", "[client][operations]") {
  OperationWindow window(8);
  for (int i = 0; i < 3; ++i) window.take();
  window.settle(1);
  window.settle(3);
  CHECK(window.low_water() == 1);
  window.settle(2);
  CHECK(window.low_water() == 3);
  CHECK(window.open_count() == 0);
}

TEST_CASE("one unsettled number fills the window however many later ones are settled",
          "[client][operations]") {
  OperationWindow window(4);
  for (int i = 0; i < 4; ++i) REQUIRE(window.take());
  window.settle(2);
  window.settle(3);
  window.settle(4);
  CHECK_FALSE(window.take());
  window.settle(1);
  CHECK(window.take() == 5);
}

TEST_CASE("a resumed session goes on above the numbers that were used", "[client][operations]") {
  OperationWindow window(100);
  const OperationNumber open = *window.take();
  window.skip_used(40);
  CHECK(window.take() == 41);
  CHECK(window.low_water() == open - 1);
  window.settle(open);
  CHECK(window.low_water() == 40);
  window.skip_used(7);
  CHECK(window.take() == 42);
}

}  // namespace
}  // namespace berth::client
