// What the device gate says, on whatever machine this runs: with a GPU, with CUDA and no driver,
// without CUDA.
#include "worker/device/device.h"

#include <catch2/catch.hpp>

namespace berth::device {

TEST_CASE("a machine without a usable GPU gets the reason as an error, not a crash", "[device]") {
  const auto count = count_devices();
  const auto opened = open_device(0);
  if (count && *count > 0) {
    REQUIRE(opened);
    CHECK((*opened)->info().uuid.size() == std::string("GPU-").size() + 36);
    return;
  }
  REQUIRE_FALSE(opened);
  CHECK_FALSE(opened.error().message.empty());
  if (!count) CHECK(opened.error() == count.error());
}

TEST_CASE("a device index that the host does not have is refused", "[device]") {
  const auto opened = open_device(-1);
  REQUIRE_FALSE(opened);
  const auto count = count_devices();
  CHECK(opened.error().reason == (count ? Reason::kInvalidConfig : Reason::kUnavailable));
}

TEST_CASE("a device pins host memory, counts what is pinned and lets it go", "[device][gpu]") {
  auto opened = open_device(0);
  if (!opened) {
    WARN("no GPU here: " << opened.error().message);
    return;
  }
  const auto memory = (*opened)->memory();
  REQUIRE(memory);
  CHECK(memory->free_bytes <= memory->total_bytes);

  std::vector<std::byte> pool(1 << 20, std::byte{7});
  REQUIRE((*opened)->register_host_memory(pool));
  CHECK((*opened)->registered_bytes() == pool.size());
  REQUIRE((*opened)->unregister_host_memory(pool));
  CHECK((*opened)->registered_bytes() == 0);
}

}  // namespace berth::device
