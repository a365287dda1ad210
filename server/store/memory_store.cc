#include "server/store/memory_store.h"

#include <utility>

namespace berth {
namespace {

constexpr size_t kLoadBatchRecords = 4096;

tl::unexpected<Error> refuse_io() {
  return refuse(Reason::kStoreDegraded, "memory store: a fault was asked for");
}

// What a store keeps: durable records, and not the replicas that an open reservation stands for.
bool is_kept(const Mutation& mutation) {
  const Replica* replica = std::get_if<Replica>(&mutation.value);
  return is_durable(mutation.key.kind) && !(replica && replica->in_reservation);
}

}  // namespace

// ---- Faults
// -------------------------------------------------------------------------------------------------

void MemoryDisk::fail(Fault first) {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  next_fault_ = first;
}

void MemoryDisk::mend() {
  const std::lock_guard lock(mutex_);
  broken_ = false;
  next_fault_ = Fault::kNone;
}

void MemoryDisk::fail_next(Fault fault) {
  const std::lock_guard lock(mutex_);
  next_fault_ = fault;
}

void MemoryDisk::fail_next_flush() {
  const std::lock_guard lock(mutex_);
  next_flush_fails_ = true;
}

void MemoryDisk::power_cut() {
  const std::lock_guard lock(mutex_);
  unsynced_.clear();
}

void MemoryDisk::set_moved() {
  const std::lock_guard lock(mutex_);
  moved_ = true;
}

uint64_t MemoryDisk::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}

uint64_t MemoryDisk::syncs() const {
  const std::lock_guard lock(mutex_);
  return syncs_;
}

// ---- Contents
// -----------------------------------------------------------------------------------------------

void MemoryDisk::apply(const Batch& batch, State& state) {
  for (const Mutation& mutation : batch.mutations) {
    if (std::holds_alternative<Forgotten>(mutation.value))
      state.records.erase(mutation.key);
    else
      state.records[mutation.key] = mutation.value;
  }
  state.now = batch.now;
}

void MemoryDisk::fold(std::vector<Batch>& batches, State& state) {
  for (const Batch& batch : batches) apply(batch, state);
  batches.clear();
}

Result<> MemoryDisk::commit(Batch batch, bool is_synced) {
  const std::lock_guard lock(mutex_);
  const Fault fault = std::exchange(next_fault_, Fault::kNone);
  const bool fails = fault != Fault::kNone || broken_ || needs_reopen_;
  const bool lands = !fails || (fault == Fault::kLanded && !needs_reopen_);
  if (lands) {
    for (const Mutation& mutation : batch.mutations)
      if (mutation.key.kind == RecordKind::kMeta) moved_ = false;
    unsynced_.push_back(std::move(batch));
  }
  if (fails) {
    needs_reopen_ = true;
    return refuse_io();
  }
  ++commits_;
  if (is_synced) {
    ++syncs_;
    fold(unsynced_, synced_);
  }
  return {};
}

Result<> MemoryDisk::flush() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(next_flush_fails_, false) || broken_ || needs_reopen_) {
    needs_reopen_ = true;
    return refuse_io();
  }
  ++syncs_;
  fold(unsynced_, synced_);
  return {};
}

Result<MemoryDisk::State> MemoryDisk::read() const {
  const std::lock_guard lock(mutex_);
  if (broken_ || needs_reopen_) return refuse_io();
  State state = synced_;
  for (const Batch& batch : unsynced_) apply(batch, state);
  return state;
}

Result<> MemoryDisk::reopen() {
  const std::lock_guard lock(mutex_);
  if (broken_) return refuse_io();
  needs_reopen_ = false;
  return {};
}

// ---- The store
// ----------------------------------------------------------------------------------------------

Result<> MemoryStore::commit(const std::vector<Mutation>& mutations, Time now, bool sync) {
  MemoryDisk::Batch batch{{}, now};
  for (const Mutation& mutation : mutations)
    if (is_kept(mutation)) batch.mutations.push_back(mutation);
  const bool is_synced =
      durability_ == Durability::kSync || (sync && durability_ != Durability::kNone);
  return disk_.commit(std::move(batch), is_synced);
}

Result<> MemoryStore::flush() {
  return durability_ == Durability::kNone ? Result<>{} : disk_.flush();
}

Result<Store::Loaded> MemoryStore::load(const Sink& sink,
                                        const std::function<void(uint64_t)>& progress) {
  Result<MemoryDisk::State> state = disk_.read();
  if (!state) return tl::unexpected(state.error());
  Loaded loaded;
  loaded.now = state->now;
  loaded.is_new = !state->records.contains(RecordTraits<Meta>::key({}));
  {
    const std::lock_guard lock(disk_.mutex_);
    loaded.moved = disk_.moved_ && !loaded.is_new;
  }
  std::vector<Mutation> batch;
  const auto hand_over = [&] {
    if (batch.empty()) return;
    sink(std::exchange(batch, {}));
    if (progress) progress(loaded.records);
  };
  for (auto& [key, value] : state->records) {
    if (key.kind != RecordKind::kMeta) ++loaded.records;
    if (const Reservation* reservation = std::get_if<Reservation>(&value)) {
      for (Mutation& expanded : expand(*reservation)) batch.push_back(std::move(expanded));
    } else {
      batch.push_back({key, std::move(value)});
    }
    if (batch.size() >= kLoadBatchRecords) hand_over();
  }
  hand_over();
  return loaded;
}

Result<> MemoryStore::reopen() { return disk_.reopen(); }

}  // namespace berth
