#include "tests/bench/core/core_rig.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/directory/invariants.h"
#include "tests/bench/core/objects.h"

namespace berth::bench {
DirectoryConfig core_config() {
  DirectoryConfig config;
  config.object_bytes_max = kPageBytes;
  config.heartbeat_deadline = seconds(1'000'000);
  return config;
}

void fail(const Error& error) {
  std::fprintf(stderr, "%s: %s\n", std::string(name_of(error.reason)).c_str(),
               error.message.c_str());
  std::exit(1);
}

CoreRig::CoreRig(const DirectoryConfig& config, Store* store) : config_(config), store_(store) {
  if (store_) {
    const auto sink = [&](std::vector<Mutation>&& part) { directory_.install(part); };
    if (const auto loaded = store_->load(sink, {}); !loaded) fail(loaded.error());
    if (const std::string broken = check_invariants(directory_); !broken.empty())
      fail({Reason::kInternal, broken});
  }
  run(Restart{StoreId{1, 1}, false});
}

Decision CoreRig::decide(const Command& command) const {
  return berth::decide(directory_, config_, {&command, 1}, now_);
}

Outcome CoreRig::run(const Command& command) {
  Decision decision = decide(command);
  if (!decision.outcomes[0]) fail(decision.outcomes[0].error());
  if (store_ && decision.is_durable)
    if (const auto stored = store_->commit(decision.mutations, now_, decision.sync); !stored)
      fail(stored.error());
  install(directory_, decision);
  now_ = now_ + milliseconds(1);
  return *std::move(decision.outcomes[0]);
}

}  // namespace berth::bench
