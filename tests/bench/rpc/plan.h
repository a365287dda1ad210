// What is to be measured, as the command line or a profile says it: fleets, and the cells that are
// run on each of them. Checked; constant while it is carried out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/rpc/disturbance.h"
#include "tests/bench/rpc/fleet.h"
#include "worker/replay/generate.h"

namespace berth::bench {

// One line of the result: a workload in one shape.
struct Cell {
  Workload workload = Workload::kProbe;
  Api api = Api::kUnary;
  uint64_t callers = 1;
  uint64_t batch = 1;  // of kTrace: zero, as long as the requests are
};

struct Plan {
  // Each combination of these is a fleet of its own.
  std::vector<Transport> transports{Transport::kTcp};
  std::vector<std::string> durabilities{"interval"};
  std::vector<uint64_t> populations{10'000};
  std::vector<Cell> cells;

  uint64_t runs = 5;
  double seconds = 1;
  double warm_up_seconds = 0.2;
  uint64_t members = 4;
  uint64_t seed = 1;
  // Open loop: at so many cycles a second, or at this share of what the closed loop has just
  // carried.
  double rate = 0;
  double load = 0;
  // Every round runs once more during each of these.
  std::vector<During> during;
  uint64_t event_objects = 200'000;
  // Requests of kTrace: a file, or generated.
  std::string trace;
  replay::TraceKind generate = replay::TraceKind::kChat;
  uint64_t requests = 2000;
  std::string directory;

  bool is_open() const { return rate > 0 || load > 0; }
  bool has(During event) const {
    return std::find(during.begin(), during.end(), event) != during.end();
  }
};

// About how long it takes on two cores: what is measured, its floors, and the filling.
double seconds_of(const Plan& plan);
// What is to be measured, for people: fleets, cells, and how long it takes.
std::string summary_of(const Plan& plan);

// The words of the command line, of the table and of the JSON.
std::string name_of(Workload workload);
std::string name_of(Api api);
std::string name_of(Transport transport);

}  // namespace berth::bench
