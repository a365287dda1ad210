// What one batch of commands holds: asked by the checks, which blame a batch, not a single command,
// and printed in what they say. Reads only; nothing is kept.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <variant>

#include "server/sequencer/decide.h"

namespace berth::sim {

// Their names, for people.
std::string commands_text(std::span<const Command> commands);

template <class C>
bool any_is(std::span<const Command> commands) {
  return std::ranges::any_of(
      commands, [](const Command& command) { return std::holds_alternative<C>(command); });
}

}  // namespace berth::sim
