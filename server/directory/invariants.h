// The invariants of docs/architecture.md in executable form. Simulation calls this after every
// commit, recovery once, `berthctl check` on demand.
#pragma once

#include <string>

#include "server/directory/directory.h"

namespace berth {

// Empty when all holds; otherwise the first broken invariant, as a sentence.
std::string check_invariants(const Directory& directory);

}  // namespace berth
