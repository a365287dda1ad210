// Where the directory's records live between runs: one atomic write, one read, and the way back after trouble.
#pragma once

#include <functional>
#include <vector>

#include "common/error.h"
#include "common/time.h"
#include "server/directory/mutation.h"

namespace berth {

enum class Durability : uint8_t {
  kSync,      // fsynced before every reply
  kInterval,  // in the log before every reply, fsynced every interval; a killed process loses nothing
  kNone,      // tests
};

// Soft records (is_durable() false) may be among the mutations; a store passes over them.
class Store {
 public:
  virtual ~Store() = default;

  // All of it or none of it, in the configured durability on return; `sync` asks for an fsync whatever the mode
  // (but kNone). `now` is persisted with it. After an error the outcome is unknown: reopen() and load() again.
  virtual Result<> commit(const std::vector<Mutation>& mutations, Time now, bool sync) = 0;

  // Fsyncs what was committed so far.
  virtual Result<> flush() = 0;

  struct Loaded {
    std::vector<Mutation> mutations;  // to be installed in this order; reservations expanded
    Time now;                         // logical time of the last commit
    bool is_new = false;              // no store header yet
  };
  // Every record. `progress` is told the number of records read so far.
  virtual Result<Loaded> load(const std::function<void(uint64_t)>& progress) = 0;

  // After trouble: closes and opens again. Errors: the trouble is still there.
  virtual Result<> reopen() = 0;
};

}  // namespace berth
