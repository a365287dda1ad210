#include "server/store/rocks_runs.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <utility>

#include "server/store/rocks_database.h"

namespace berth {
namespace {

std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

std::string key_of_changes(uint64_t first) { return key_of_id(first) + kKeySuffix; }

bool is_sparse(const Run& run) { return run.live() * kSparseShare <= run.count; }

// The live items, as they are now, at the front.
void keep_live(const Run& run, std::vector<Replica>& replicas) {
  for (const Run::Change& change : run.changes) {
    replicas[change.index].state = change.state;
    replicas[change.index].why = change.why;
  }
  if (run.gone.none()) return;
  std::erase_if(replicas, [&run](const Replica& replica) {
    return run.gone.test(replica.id.value() - run.first);
  });
}

}  // namespace

// ---- Reading
// ------------------------------------------------------------------------------------------------

Result<> RocksRuns::read(const Visit& visit) {
  is_known_ = false;
  index_.clear();
  changed_.clear();
  sparse_.clear();
  const auto unreadable = [](std::string_view key) {
    return tl::unexpected(unreadable_record(Family::kRuns, key));
  };
  const std::unique_ptr<rocksdb::Iterator> at(database_.scan(Family::kRuns));
  at->SeekToFirst();
  while (at->Valid()) {
    const std::string key(view(at->key()));
    if (key.size() != kIdKeyBytes) return unreadable(key);
    Run run;
    run.first = id_of_key(key);
    if (!run_codec_.decode(run.first, view(at->value()), replicas_)) return unreadable(key);
    run.count = static_cast<uint32_t>(replicas_.size());
    if (index_.overlaps(run.first, run.count)) return unreadable(key);
    at->Next();
    if (at->Valid() && view(at->key()) == key_of_changes(run.first)) {
      if (!run_codec_.decode_changes(view(at->value()), run)) return unreadable(view(at->key()));
      at->Next();
    }
    keep_live(run, replicas_);
    if (visit) visit(replicas_);
    note(index_.insert(std::move(run)));
  }
  if (!at->status().ok()) return tl::unexpected(error_of(at->status(), database_.folder()));
  is_known_ = true;
  return {};
}

// ---- Writing
// ------------------------------------------------------------------------------------------------

void RocksRuns::note(Run& run) {
  if (run.is_sparse || !is_sparse(run)) return;
  run.is_sparse = true;
  sparse_.push_back(run.first);
}

size_t RocksRuns::put(std::span<const Mutation> mutations) {
  const size_t count = run_length(mutations);
  if (count < kRunReplicasMin) return 0;
  const uint64_t first = mutations[0].key.first;
  // An id that was in a run and came back, though it should not: it stands for itself.
  if (index_.overlaps(first, count)) return 0;
  const std::string_view value = run_codec_.encode(mutations.first(count));
  batch_.Put(database_.handle(Family::kRuns), key_of_id(first), slice(value));
  index_.insert({.first = first, .count = static_cast<uint32_t>(count)});
  return count;
}

bool RocksRuns::change(const Mutation& mutation) {
  if (mutation.key.kind != RecordKind::kReplica || index_.is_empty()) return false;
  const Replica* replica = std::get_if<Replica>(&mutation.value);
  if (replica && replica->in_reservation) return false;
  Run* run = index_.find(mutation.key.first);
  if (!run) return false;
  if (!std::exchange(run->is_dirty, true)) changed_.push_back(run->first);
  const size_t item = mutation.key.first - run->first;
  if (!replica || mutation.is_first_record)
    run->drop(item);
  else
    run->change(item, replica->state, replica->why);
  return !mutation.is_first_record;
}

rocksdb::Status RocksRuns::finish() {
  // First those that an earlier batch found sparse: their records are on disk.
  const rocksdb::Status written = write_sparse();
  write_changes();
  return written;
}

void RocksRuns::write_changes() {
  for (const uint64_t first : std::exchange(changed_, {})) {
    Run* run = index_.find_run(first);
    if (!run) continue;  // written anew
    run->is_dirty = false;
    if (run->live() == 0) {
      erase(first);
      continue;
    }
    const std::string_view value = run_codec_.encode_changes(*run);
    batch_.Put(database_.handle(Family::kRuns), key_of_changes(first), slice(value));
    note(*run);
  }
}

rocksdb::Status RocksRuns::write_sparse() {
  for (size_t i = 0; i < kSparseRunsPerCommit && !sparse_.empty();) {
    const uint64_t first = sparse_.front();
    sparse_.pop_front();
    const Run* run = index_.find_run(first);
    if (!run || !run->is_sparse) continue;
    if (run->live() > 0) {
      if (const rocksdb::Status status = write_anew(*run); !status.ok()) return status;
      ++i;
    }
    erase(first);
  }
  return rocksdb::Status::OK();
}

rocksdb::Status RocksRuns::write_anew(const Run& run) {
  const std::string key = key_of_id(run.first);
  std::string value;
  if (const rocksdb::Status found =
          database_.db().Get(rocksdb::ReadOptions(), database_.handle(Family::kRuns), key, &value);
      !found.ok())
    return found;
  if (!run_codec_.decode(run.first, value, replicas_) || replicas_.size() != run.count)
    return rocksdb::Status::Corruption(unreadable_record(Family::kRuns, key).message);
  keep_live(run, replicas_);
  for (const Replica& replica : replicas_) {
    const auto change = codec_.encode(put_of(replica));
    batch_.Put(database_.handle(change->family), slice(change->key), slice(change->value));
  }
  return rocksdb::Status::OK();
}

void RocksRuns::erase(uint64_t first) {
  batch_.Delete(database_.handle(Family::kRuns), key_of_id(first));
  batch_.Delete(database_.handle(Family::kRuns), key_of_changes(first));
  index_.erase(first);
}

}  // namespace berth
