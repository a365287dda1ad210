// Decides one command against a draft. Pure: the outcome depends on the draft's records, the
// command and `now`. A refused command leaves no trace in the draft.
#pragma once

#include "common/error.h"
#include "server/directory/commands.h"
#include "server/directory/config.h"
#include "server/directory/draft.h"

namespace berth {

// `now` never goes back, also across restarts.
Result<Outcome> apply(Draft& draft, const DirectoryConfig& config, const Command& command,
                      Time now);

// How many records the command may change at most, roughly: the sequencer bounds its batches by the
// sum.
size_t weight_of(const Command& command);

}  // namespace berth
