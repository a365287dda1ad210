// The copies that left lately, and why: what Explain answers about objects that are no longer
// there. Soft and bounded: a ring of the last ones, empty after a restart.
//
//   before_install: READY here, RETIRING or forgotten in the mutation ─▶ one entry
//
// Thread-safe: the sequencer writes before it installs, Explain reads from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "server/directory/directory.h"

namespace berth {

struct RetiredCopy {
  ObjectKey key;
  ReplicaId replica;
  PoolId pool;
  // None: it was forgotten without having retired; its memory or its place in the owner's ledger is
  // gone.
  Why why = Why::kNone;
  Time when;
};

class RetiredHistory {
 public:
  // Entries kept; zero: none.
  explicit RetiredHistory(size_t entries_max) : entries_max_(entries_max) {}

  // Before `mutations` are installed into `directory`.
  void before_install(const Directory& directory, std::span<const Mutation> mutations, Time now);

  // Those of one chunk, newest first, at most `count_max`.
  std::vector<RetiredCopy> of_chunk(NamespaceId ns, const Digest& digest, size_t count_max) const;
  size_t size() const;
  size_t memory_bytes() const;

 private:
  const size_t entries_max_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<RetiredCopy> ring_;
  size_t next_ = 0;  // where the next entry goes once the ring is full
};

}  // namespace berth
