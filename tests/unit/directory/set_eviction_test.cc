// Setting policies: what is not given keeps what is in force when the command is decided.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

EvictionSetting in_force(const World& world) {
  const auto* set = world.directory.find<EvictionSetting>({});
  return set ? *set : world.config.eviction;
}

// As the Admin service translates "this watermark and nothing else".
SetEviction watermarks(uint32_t high_permille, uint32_t low_permille) {
  SetEviction command;
  command.keep_kind = true;
  command.setting.high_permille = high_permille;
  command.setting.low_permille = low_permille;
  return command;
}

}  // namespace

TEST_CASE("a setting that names one thing keeps the others, whoever set them",
          "[directory][eviction]") {
  World world;
  world.config.eviction = {policy::EvictionKind::kS3Fifo, 950, 700};
  world.must<Done>(watermarks(900, 0));
  CHECK(in_force(world) == EvictionSetting{policy::EvictionKind::kS3Fifo, 900, 700});
  CHECK(world.needs_sync);
  SetEviction kind;
  kind.setting = {policy::EvictionKind::kLru, 0, 0};
  world.must<Done>(kind);
  CHECK(in_force(world) == EvictionSetting{policy::EvictionKind::kLru, 900, 700});
  world.must<Done>(watermarks(0, 600));
  CHECK(in_force(world) == EvictionSetting{policy::EvictionKind::kLru, 900, 600});
  SetEviction reset;
  reset.reset = true;
  world.must<Done>(reset);
  CHECK(in_force(world) == world.config.eviction);
}

TEST_CASE("a watermark is held against the one that is kept, and a refusal changes nothing",
          "[directory][eviction]") {
  World world;
  world.must<Done>(watermarks(800, 700));
  CHECK(world.refused(watermarks(700, 0)) == Reason::kInvalidArgument);
  CHECK(world.refused(watermarks(0, 800)) == Reason::kInvalidArgument);
  CHECK(world.refused(watermarks(1001, 0)) == Reason::kInvalidArgument);
  CHECK(in_force(world) == EvictionSetting{policy::EvictionKind::kAdaptive, 800, 700});
}

}  // namespace berth
