// Another process that has a store open and commits transition after transition, telling each
// acknowledged number, until it is killed. It is this test binary again, started anew, because a
// forked copy of a process with threads cannot open a database.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/unique_fd.h"
#include "server/store/store.h"
#include "tests/unit/common/child_process.h"

namespace berth::testing {

class StoreProcess {
 public:
  StoreProcess(const std::string& directory, Durability durability);

  // The next number that was acknowledged; nothing once the process is dead and all it told was
  // read.
  std::optional<uint64_t> next_acknowledged();
  void kill_hard() { child_->kill_hard(); }

 private:
  UniqueFd told_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace berth::testing
