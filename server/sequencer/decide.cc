#include "server/sequencer/decide.h"

#include <algorithm>

namespace berth {

Decision decide(const Directory& directory, const DirectoryConfig& config,
                std::span<const Command> commands, Time now) {
  Draft draft(directory);
  Decision decision;
  decision.outcomes.reserve(commands.size());
  for (const Command& command : commands)
    decision.outcomes.push_back(apply(draft, config, command, now));
  decision.mutations = draft.take_mutations();
  decision.events = draft.take_events();
  decision.asks = draft.take_asks();
  decision.counters = draft.counters();
  decision.sync = draft.needs_sync();
  decision.is_durable =
      std::any_of(decision.mutations.begin(), decision.mutations.end(),
                  [](const Mutation& mutation) { return is_durable(mutation.key.kind); });
  return decision;
}

void install(Directory& directory, const Decision& decision) {
  directory.install(decision.mutations);
  directory.set_counters(decision.counters);
}

}  // namespace berth
