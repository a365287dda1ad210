// Runs: replicas that became READY together are one record in columns, because one record each
// costs more than everything else that is done for an object.
//
//   family runs   7     -> digests, pool, offsets ... of 7 to 11
//                 7 FF  -> 8 is gone, 10 is RETIRING       absent while nothing has changed
//
// An item leaves its run by being forgotten or, where a run is not worth its bytes any more, by
// getting a record of its own: then both is in one batch. So a replica is live in one place, and
// what is gone cannot come back. A run of which nothing is left is deleted.
//
// Private to RocksDbStore: one batch at a time, from the sequencer's thread. What it knows is what
// was read from the disk and was put into batches since, so it ends with the opening of the
// database that it was read from, and a commit that fails ends that.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "common/error.h"
#include "server/store/codec.h"
#include "server/store/run_codec.h"
#include "server/store/run_index.h"

namespace rocksdb {
class WriteBatch;
}  // namespace rocksdb

namespace berth {

class RocksDatabase;

// Fewer are cheaper to keep as records of their own, in memory too.
inline constexpr size_t kRunReplicasMin = 4;
// A run of which no more than this share is live is written anew, as records of their own, so that
// the disk holds little more than what lives. So many a commit, which bounds its time.
inline constexpr size_t kSparseShare = 4;
inline constexpr size_t kSparseRunsPerCommit = 4;

class RocksRuns {
 public:
  RocksRuns(RocksDatabase& database, rocksdb::WriteBatch& batch, Codec& codec)
      : database_(database), batch_(batch), codec_(codec) {}

  // False until read() succeeded; then nothing may be put into a batch.
  bool is_known() const { return is_known_; }

  // Reads all runs and tells `visit` of the live replicas of each, in the order of ids. Errors:
  // kStoreCorrupt; those of the database.
  using Visit = std::function<void(std::span<const Replica>)>;
  Result<> read(const Visit& visit);
  // Whether a replica is live in a run.
  bool has(const RecordKey& key) {
    return key.kind == RecordKind::kReplica && index_.find(key.first) != nullptr;
  }

  // The rest is for a batch under way.
  //
  // Writes a run, if the mutations begin with one: how many it took.
  size_t put(std::span<const Mutation> mutations);
  // Whether this was a change of a run's item, which needs nothing else.
  bool change(const Mutation& mutation);
  // Adds what the batch's changes come to.
  rocksdb::Status finish();

 private:
  void note(Run& run);
  void write_changes();
  rocksdb::Status write_sparse();
  rocksdb::Status write_anew(const Run& run);
  void erase(uint64_t first);

  RocksDatabase& database_;
  rocksdb::WriteBatch& batch_;
  Codec& codec_;
  RunCodec run_codec_;
  RunIndex index_;
  bool is_known_ = false;
  std::vector<uint64_t> changed_;  // runs, in this batch
  std::deque<uint64_t> sparse_;    // runs that wait to be written anew; some may be gone since
  std::vector<Replica> replicas_;  // of the run that was read last
};

}  // namespace berth
