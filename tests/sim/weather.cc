#include "tests/sim/weather.h"

namespace berth::sim {
namespace {

struct Habit {
  Deed deed;
  uint32_t usual;
  uint64_t absent;  // per mille of seeds in which it never happens
};
constexpr Habit kHabits[] = {
    {Deed::kJoin, 300, 0},           {Deed::kStore, 1200, 0},
    {Deed::kWrite, 400, 0},          {Deed::kFinish, 300, 0},
    {Deed::kGiveUp, 60, 300},        {Deed::kLoad, 1200, 0},
    {Deed::kRead, 300, 0},           {Deed::kRelease, 300, 100},
    {Deed::kRenew, 80, 300},         {Deed::kProbe, 60, 300},
    {Deed::kRepeat, 100, 300},       {Deed::kReuseNumber, 20, 500},
    {Deed::kLeave, 12, 400},         {Deed::kEngineStream, 12, 500},
    {Deed::kEngineCrash, 20, 400},   {Deed::kEngineFork, 12, 600},
    {Deed::kForkEnds, 20, 0},        {Deed::kEngineStall, 15, 500},
    {Deed::kWorkerCrash, 10, 500},   {Deed::kWorkerStall, 10, 600},
    {Deed::kHostReboot, 3, 700},     {Deed::kServerCrash, 15, 400},
    {Deed::kPowerCut, 12, 500},      {Deed::kServerStall, 12, 600},
    {Deed::kCommitFails, 15, 500},   {Deed::kFlushFails, 5, 700},
    {Deed::kDiskBreaks, 5, 700},     {Deed::kStoreMoved, 4, 850},
    {Deed::kLinkBreaks, 30, 300},    {Deed::kOneWayBreak, 10, 600},
    {Deed::kLateBreak, 40, 400},     {Deed::kTimeJump, 30, 300},
    {Deed::kEvict, 120, 300},        {Deed::kEvictChunks, 30, 500},
    {Deed::kEvictNamespace, 8, 600}, {Deed::kTrimPool, 10, 600},
    {Deed::kDrain, 12, 600},         {Deed::kUndrain, 20, 600},
    {Deed::kPin, 40, 500},           {Deed::kUnpin, 30, 500},
    {Deed::kSetEviction, 10, 500},   {Deed::kQuota, 10, 600},
    {Deed::kFence, 10, 500},         {Deed::kFenceLive, 20, 600},
    {Deed::kClosePool, 5, 700},      {Deed::kNeighboursBreak, 20, 400},
};

}  // namespace

EvictionSetting some_setting(Random& random) {
  EvictionSetting setting;
  setting.kind = static_cast<policy::EvictionKind>(1 + random.below(4));
  setting.high_permille = static_cast<uint32_t>(random.between(500, 1000));
  const int64_t gap = random.chance(500) ? 100 : random.between(1, setting.high_permille - 1);
  setting.low_permille = static_cast<uint32_t>(setting.high_permille - gap);
  return setting;
}

Weather::Weather(Random& random) {
  for (const Habit& habit : kHabits) {
    if (random.chance(habit.absent)) continue;
    const uint64_t swing = random.below(4);  // a quarter to three times as often
    const uint32_t weight = habit.usual * (swing == 0 ? 1 : swing == 3 ? 12 : 4);
    weights[static_cast<size_t>(habit.deed)] = weight;
    weight_total += weight;
  }

  directory.heartbeat_interval = milliseconds(random.between(2, 6) * 100);
  directory.heartbeat_deadline = milliseconds(random.between(20, 40) * 100);
  directory.write_within_default = milliseconds(random.between(10, 40) * 100);
  directory.lease_ttl_default = milliseconds(random.between(10, 40) * 100);
  directory.write_within_max = seconds(10);
  directory.lease_ttl_max = seconds(10);
  directory.reclaim_again = milliseconds(random.between(5, 20) * 100);
  directory.batch_items_max = 64;
  directory.operations_max = static_cast<uint32_t>(random.between(4, 48));
  directory.reservations_max = static_cast<uint32_t>(random.between(3, 24));
  directory.leases_max = static_cast<uint32_t>(random.between(3, 24));
  directory.slice_records = static_cast<uint32_t>(random.chance(500) ? 1 + random.below(8) : 1024);
  directory.object_bytes_max = 64 * 1024;
  if (random.chance(300)) directory.namespace_quota_bytes = 4096 * (6 + random.below(20));

  directory.pin_ttl_default = milliseconds(random.between(10, 60) * 100);
  directory.pin_ttl_max = seconds(20);
  directory.pins_max = static_cast<uint32_t>(random.chance(300) ? 1 + random.below(6) : 64);
  directory.eviction = some_setting(random);
  evictor.slice_replicas = static_cast<uint32_t>(1 + random.below(8));
  evictor.move_replicas = static_cast<uint32_t>(1 + random.below(8));
  evictor.retry = milliseconds(random.between(2, 15) * 100);
  hints = static_cast<Hints>(random.below(3));
  diligence = random.chance(250) ? 0 : 500 + random.below(501);

  durability = random.chance(350) ? Durability::kSync : Durability::kInterval;
  flush_every = random.chance(250) ? random.between(300, 6000) : 100;
  step_max = random.between(20, 120);
  latency_max = random.chance(100) ? 300 : random.between(1, 12);
  batch_commands = 1 + random.below(12);
  worker_count = 1 + random.below(3);
  engines_per_worker = 1 + random.below(4);
  node_count = random.chance(500) ? 1 : 1 + random.below(worker_count);  // often neighbours
  pool_pages = 6 + random.below(24);
  budget_pages = random.chance(300) ? pool_pages - random.below(4) : pool_pages;
  private_pool = random.chance(300);
  shares_pools = random.chance(700);
  tight_host = random.chance(300);
  chunk_count = 3 + random.below(14);
  reattach_chunk = random.chance(500) ? 1 + random.below(4) : 64;
  reattach_window = 1 + random.below(4);
  if (random.chance(300)) call_lost = call_doubled = 250;
  call_late = random.chance(500) ? 300 : 0;
}

Deed Weather::draw(Random& random) const {
  uint64_t pick = random.below(weight_total);
  size_t deed = 0;
  while (pick >= weights[deed]) pick -= weights[deed++];
  return static_cast<Deed>(deed);
}

}  // namespace berth::sim
