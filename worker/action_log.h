// The agent's notes as log lines: nothing is logged in the core, so the shell says what it decided.
#pragma once

#include "worker/session/actions.h"

namespace berth::worker {

void log_note(const Note& note);

}  // namespace berth::worker
