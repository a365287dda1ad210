// What every inhabitant of the simulated world is given: the world's clock, chance and judge, and
// whom it can reach. All of it belongs to the World and outlives them.
#pragma once

#include <memory>
#include <vector>

#include "tests/sim/life_locks.h"
#include "tests/sim/planted.h"
#include "tests/sim/server.h"
#include "tests/sim/witness.h"

namespace berth::sim {

class Worker;

struct Hub {
  Schedule& schedule;
  Random& random;
  const Weather& weather;
  Judge& judge;
  LifeLocks& locks;
  Witness& witness;
  Server& server;
  Plant plant = Plant::kNone;
  // All that were made: their callbacks hold them, so the world takes them apart in its end.
  std::vector<std::weak_ptr<Stream>> streams = {};
  std::vector<Worker*> workers = {};
};

}  // namespace berth::sim
