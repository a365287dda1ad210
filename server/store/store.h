// Where the directory's records live between runs: one atomic write, one read, and the way back
// after trouble.
//
// Threads: commit(), load() and reopen() belong to the sequencer's thread. flush() may run on
// another thread beside commit(), so that an fsync holds up no reply, but never beside load() or
// reopen().
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/error.h"
#include "common/time.h"
#include "server/directory/mutation.h"

namespace berth {

enum class Durability : uint8_t {
  kSync,      // fsynced before every reply
  kInterval,  // in the log before every reply, fsynced every interval; a killed process loses
              // nothing
  kNone,      // tests
};

// Soft records (is_durable() false) may be among the mutations; a store passes over them. So it
// does over the replicas of an open reservation (in_reservation): the reservation's record is their
// record.
class Store {
 public:
  virtual ~Store() = default;

  // All of it or none of it, in the configured durability on return; `sync` asks for an fsync
  // whatever the mode (but kNone). `now` is persisted with it. After an error the outcome is
  // unknown: reopen() and load() again. Errors: kStoreDegraded.
  virtual Result<> commit(const std::vector<Mutation>& mutations, Time now, bool sync) = 0;

  // Fsyncs what was committed so far. Errors: kStoreDegraded; which of the latest commits a power
  // cut would take is then unknown, so reopen() and load() again.
  virtual Result<> flush() = 0;

  struct Loaded {
    Time now;             // logical time of the last commit
    bool is_new = false;  // no store header yet
    // The store is not where it was made: a copy, or a restored backup. Its ids may be made a
    // second time elsewhere, so it needs a new store id; the first commit of a Meta record makes
    // this place its home.
    bool moved = false;
    uint64_t records = 0;
  };
  // Gets records in batches of a few thousand, to be installed in this order: pools before the
  // replicas in them, replicas before the leases on them; reservations come expanded.
  using Sink = std::function<void(std::vector<Mutation>&&)>;
  // Reads every record once. `progress`, which may be empty, is told the number of records read so
  // far after each batch. Errors: kStoreCorrupt naming the record.
  virtual Result<Loaded> load(const Sink& sink, const std::function<void(uint64_t)>& progress) = 0;

  // After trouble: closes and opens again. Errors: the trouble is still there.
  virtual Result<> reopen() = 0;
};

}  // namespace berth
