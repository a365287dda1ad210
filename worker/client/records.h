// What is behind a PendingStore and a LoadHandle. Each belongs to the user's object alone, but its
// flags are set by the join thread, and its memory stays mapped as long as it exists.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/client/mapping.h"
#include "worker/client/session.h"
#include "worker/client/types.h"

namespace berth::client {

class Core;

// What a PendingStore and a LoadHandle have in common: enough to know whether they are still good,
// to give back what they hold, and to keep their memory mapped.
struct Holder {
  std::shared_ptr<Core> core;
  std::shared_ptr<Session> session;
  std::shared_ptr<const PoolMaps> maps;
  StopFlag detached;                                              // the worker went away
  StopFlag stopped = std::make_shared<std::atomic<bool>>(false);  // cancelled or revoked

  // Ordered after the reads that the caller made before, so that it can vouch for them.
  bool is_valid() const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return !detached->load(std::memory_order_acquire) && !stopped->load(std::memory_order_acquire);
  }
};

struct StoreRecord : Holder {
  OperationNumber operation = 0;
  std::vector<StoreItem> items;
  std::vector<uint64_t> replicas;   // by item; zero once it is not open (any more)
  std::vector<uint32_t> positions;  // by item, or none
  bool ends_chain = false;
};

struct LoadRecord : Holder {
  uint64_t handle = 0;
  LoadState state = LoadState::kComplete;
  MissReason miss_reason = MissReason::kNone;
  std::vector<ChunkClass> classes;
  uint32_t shards = 1;
  uint32_t parts = 1;
  std::vector<std::span<const std::byte>> spans;  // chunk by chunk, shard by shard, part by part
};

}  // namespace berth::client
