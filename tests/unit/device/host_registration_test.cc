// A driver that fails where it is told to, and keeps its last error latched as CUDA does.
#include "worker/device/host_registration.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace berth::device {
namespace {

constexpr int kOutOfMemory = 2;
constexpr size_t kChunk = 1024;

class FakeDriver : public HostRegisterCalls {
 public:
  int fail_register_call = 0;  // the n-th call fails; 0: none
  std::set<std::byte*> stuck;  // chunks that cannot be unregistered
  std::map<std::byte*, size_t> pinned;
  int latched = 0;

  int register_chunk(std::span<std::byte> chunk) override {
    if (++register_calls_ == fail_register_call) return latched = kOutOfMemory;
    pinned[chunk.data()] = chunk.size();
    return 0;
  }
  int unregister_chunk(std::byte* start) override {
    if (stuck.contains(start) || !pinned.contains(start)) return latched = kOutOfMemory;
    pinned.erase(start);
    return 0;
  }
  void clear_latched_error() override { latched = 0; }
  std::string describe(int code) const override { return "driver code " + std::to_string(code); }

 private:
  int register_calls_ = 0;
};

struct Fixture {
  FakeDriver driver;
  std::vector<std::byte> memory = std::vector<std::byte>(3 * kChunk + 512);
  HostRegistrations registrations{driver, kChunk};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a range is registered in chunks and unregistered whole",
                 "[device][registration]") {
  REQUIRE(registrations.add(memory));
  CHECK(driver.pinned.size() == 4);
  CHECK(registrations.registered_bytes() == memory.size());

  REQUIRE(registrations.remove(memory));
  CHECK(driver.pinned.empty());
  CHECK(registrations.registered_bytes() == 0);
}

TEST_CASE_METHOD(Fixture, "a chunk that fails rolls the earlier ones back and clears the latch",
                 "[device][registration][FC-22]") {
  driver.fail_register_call = GENERATE(1, 3, 4);
  const auto added = registrations.add(memory);
  REQUIRE_FALSE(added);
  CHECK(added.error().message.find("3.5KiB") != std::string::npos);
  CHECK(added.error().message.find("driver code 2") != std::string::npos);
  CHECK(added.error().message.find("LimitMEMLOCK") != std::string::npos);
  CHECK(driver.pinned.empty());
  CHECK(driver.latched == 0);
  CHECK(registrations.registered_bytes() == 0);

  CHECK(registrations.add(memory));  // nothing of the failed try is in the way
}

TEST_CASE_METHOD(Fixture, "a chunk that cannot be unregistered is still counted and tried again",
                 "[device][registration][FC-22]") {
  REQUIRE(registrations.add(memory));
  std::byte* const second = memory.data() + kChunk;
  driver.stuck = {second};
  const auto removed = registrations.remove(memory);
  REQUIRE_FALSE(removed);
  CHECK(driver.latched == 0);
  CHECK(driver.pinned.size() == 1);
  CHECK(registrations.registered_bytes() == kChunk);

  driver.stuck.clear();
  CHECK(registrations.remove(memory));
  CHECK(driver.pinned.empty());
}

TEST_CASE_METHOD(Fixture, "a rollback that fails keeps what it left in the books",
                 "[device][registration][FC-22]") {
  driver.fail_register_call = 3;
  driver.stuck = {memory.data()};
  const auto added = registrations.add(memory);
  REQUIRE_FALSE(added);
  CHECK(added.error().message.find("1 earlier chunks") != std::string::npos);
  CHECK(registrations.registered_bytes() == kChunk);
  CHECK(driver.latched == 0);
}

TEST_CASE("what is left at the end is unregistered", "[device][registration]") {
  FakeDriver driver;
  std::vector<std::byte> memory(2 * kChunk);
  {
    HostRegistrations registrations(driver, kChunk);
    REQUIRE(registrations.add(memory));
  }
  CHECK(driver.pinned.empty());
}

TEST_CASE_METHOD(Fixture, "overlapping, empty and unknown ranges are refused",
                 "[device][registration]") {
  const std::span<std::byte> all(memory);
  REQUIRE(registrations.add(all.subspan(kChunk, kChunk)));
  CHECK_FALSE(registrations.add(all));
  CHECK_FALSE(registrations.add(all.subspan(2 * kChunk - 1, 1)));
  CHECK_FALSE(registrations.add(all.first(0)));
  CHECK_FALSE(registrations.remove(all));
  CHECK(registrations.add(all.first(kChunk)));
  CHECK(registrations.add(all.subspan(2 * kChunk)));
}

TEST_CASE_METHOD(Fixture, "a copy is cut at the ends of chunks and nowhere else",
                 "[device][registration]") {
  const std::span<std::byte> all(memory);
  CHECK(registrations.pieces_of(all).size() == 1);

  REQUIRE(registrations.add(all.subspan(512)));  // chunks begin at 512, 1536, 2560
  const auto pieces = registrations.pieces_of(all.first(2 * kChunk));
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[0].size() == 512);
  CHECK(pieces[1].size() == kChunk);
  CHECK(pieces[2].size() == 512);
  CHECK(pieces[2].data() == memory.data() + 1536);
}

}  // namespace berth::device
