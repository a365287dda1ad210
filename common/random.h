// Chance from the kernel, for what must be unguessable or unique: store ids, session tokens. The
// core never calls it; random values come in with the command.
#pragma once

#include <cstdint>

#include "common/ids.h"

namespace berth {

// Never the invalid (all-zero) id.
Id128 random_id128();
// A seed for back-off jitter and the like.
uint64_t random_seed();

}  // namespace berth
