// The agent's notes as log lines: nothing is logged in the core, so the shell says what was decided
// there, once, with the agent's own fields. Thread-safe.
#pragma once

#include "worker/session/actions.h"

namespace berth::worker {

void log_note(const Note& note);

}  // namespace berth::worker
