// A store that is only memory, with the troubles of a real one on request. For the simulator and
// for tests.
//
//   MemoryDisk disk;                            outlives every "process" that opens it
//   { MemoryStore store(disk); ... }            kill -9: what was committed is still there
//   disk.power_cut();                           what was not flushed is not
//   disk.fail_next(MemoryDisk::Fault::kLanded)  the next commit is refused, though its batch is on
//   the disk
//
// MemoryDisk is thread-safe, so that a flusher and a test may act beside the sequencer.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/error.h"
#include "server/store/store.h"

namespace berth {

class MemoryDisk {
 public:
  // What becomes of a commit that fails: its caller cannot tell.
  enum class Fault : uint8_t { kNone, kLost, kLanded };

  // Until mend(), every commit, flush and reopen fails; the first commit meets `first`, later ones
  // are lost.
  void fail(Fault first);
  void mend();
  // The next commit only; reopening helps at once.
  void fail_next(Fault fault);
  // The next flush only.
  void fail_next_flush();
  // Drops what was committed since the last flush or synced commit.
  void power_cut();
  // The disk was copied or restored: the next load says `moved`, until a Meta record is committed.
  void set_moved();

  uint64_t commits() const;
  uint64_t syncs() const;

 private:
  friend class MemoryStore;
  struct Batch {
    std::vector<Mutation> mutations;
    Time now;
  };
  using Records = std::map<RecordKey, RecordValue>;
  struct State {
    Records records;
    Time now;
  };

  static void apply(const Batch& batch, State& state);
  static void fold(std::vector<Batch>& batches, State& state);

  Result<> commit(Batch batch, bool is_synced);
  Result<> flush();
  Result<State> read() const;
  Result<> reopen();

  mutable std::mutex mutex_;  // guards everything below
  State synced_;
  std::vector<Batch> unsynced_;
  Fault next_fault_ = Fault::kNone;
  bool next_flush_fails_ = false;
  bool broken_ = false;        // until mend()
  bool needs_reopen_ = false;  // after any failure
  bool moved_ = false;
  uint64_t commits_ = 0;
  uint64_t syncs_ = 0;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(MemoryDisk& disk, Durability durability = Durability::kInterval)
      : disk_(disk), durability_(durability) {}

  Result<> commit(const std::vector<Mutation>& mutations, Time now, bool sync) override;
  Result<> flush() override;
  Result<Loaded> load(const Sink& sink, const std::function<void(uint64_t)>& progress) override;
  Result<> reopen() override;

 private:
  MemoryDisk& disk_;
  const Durability durability_;
};

}  // namespace berth
