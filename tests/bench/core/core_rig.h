// berthd's core without everything around it: decide() and install() over a directory in this
// process, one command at a time; no RPC, no threads, and a store only if one is given.
#pragma once

#include <cstdint>

#include "server/directory/config.h"
#include "server/directory/directory.h"
#include "server/sequencer/decide.h"
#include "server/store/store.h"
#include "tests/bench/core/core_member.h"

namespace berth::bench {

DirectoryConfig core_config();

// Ends the program.
[[noreturn]] void fail(const Error& error);

class CoreRig {
 public:
  // Reads what the store holds, if there is one, and checks it; then starts an epoch as berthd
  // does.
  explicit CoreRig(const DirectoryConfig& config = core_config(), Store* store = nullptr);

  // Decides, commits and installs. A millisecond goes by.
  Outcome run(const Command& command);
  RunCommand runner() {
    return [this](const Command& command) { return run(command); };
  }

  // Only decides.
  Decision decide(const Command& command) const;

  Directory& directory() { return directory_; }
  const Directory& directory() const { return directory_; }

 private:
  const DirectoryConfig config_;
  Store* const store_;
  Directory directory_;
  Time now_;
};

}  // namespace berth::bench
