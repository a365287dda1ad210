// The decision of one batch, without threads, clock or disk: commands in, everything that follows
// out. The sequencer and the simulator drive the same steps:
//
//   Decision d = decide(directory, config, commands, now);   the directory is untouched
//   store.commit(d.mutations, now, d.sync)                   only if d.is_durable; on failure: drop
//   d and reload install(directory, d);                                   memory follows the disk
//   d.outcomes, d.events, d.asks                             leave, in this order
#pragma once

#include <span>
#include <vector>

#include "common/error.h"
#include "server/directory/apply.h"
#include "server/directory/commands.h"
#include "server/directory/config.h"
#include "server/directory/directory.h"
#include "server/directory/event.h"

namespace berth {

struct Decision {
  std::vector<Result<Outcome>> outcomes;  // one per command, in order; a refusal changed nothing
  std::vector<Mutation> mutations;
  std::vector<Event> events;
  std::vector<Ask> asks;
  IdCounters counters;      // where fresh ids go on
  bool is_durable = false;  // there is something for the store
  bool sync = false;        // and it gives or takes identity
};

Decision decide(const Directory& directory, const DirectoryConfig& config,
                std::span<const Command> commands, Time now);

void install(Directory& directory, const Decision& decision);

}  // namespace berth
