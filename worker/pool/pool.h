// One pool: memory of one medium that objects lie in, as the worker sees it.
//
// The cut: a Pool is the medium (mapping, barrier, facts) and knows nothing of replicas; which
// pages are used, and by whom, is the Ledger's (ledger.h), which knows no memory. So allocate, free
// and usage are the same pure code for every medium, the simulator runs it as it is, and a medium
// is only what really differs: how bytes are reached, made visible and pinned.
//
// A Pool owns its mapping and descriptor until it is destroyed. Everything here is thread-safe
// unless a pool says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"

namespace berth::pool {

// The protocol's numbers (types.proto); never renumber.
enum class Medium : uint8_t { kCpu = 1, kCxl = 2, kSsd = 3 };
enum class Tier : uint8_t { kL1 = 1, kL2 = 2 };
enum class Scope : uint8_t { kProcess = 1, kHost = 2, kDomain = 3 };

struct PoolTraits {
  std::string name;
  Medium medium = Medium::kCpu;
  Tier tier = Tier::kL1;
  Scope scope = Scope::kHost;
  std::string engine;  // kProcess: the engine it is private to; empty: the first that joins
  uint64_t capacity_bytes = 0;  // a multiple of page_bytes
  uint64_t page_bytes = 0;      // a power of two
  uint64_t budget_bytes = 0;    // most that may be used at once; at most capacity_bytes
  uint64_t map_bytes = 0;       // length that an importer maps from offset 0; at least the capacity
};

// What the medium really holds, as measured and never as asked for.
struct PoolBacking {
  uint64_t backing_bytes = 0;      // held by the medium for this pool, alignment included
  uint64_t pinned_bytes = 0;       // cannot be swapped or moved (mlock, device registration)
  uint64_t media_page_bytes = 0;   // page size of the mapping: 4 KiB, 2 MiB, ...
  int numa_node = -1;              // node of most of the pages; -1: unknown
  uint64_t off_node_permille = 0;  // share of the sampled pages that lie on another node
};

// A registration of a pool's memory with a device (cudaHostRegister). Made by worker/device over
// Pool::memory() and handed to the pool, which destroys it before it unmaps.
class PoolRegistration {
 public:
  virtual ~PoolRegistration() = default;
  virtual uint64_t pinned_bytes() const = 0;
};

class Pool {
 public:
  virtual ~Pool() = default;

  virtual const PoolTraits& traits() const = 0;

  // The worker's own view of a span. A span beyond the pool is our own bug and ends the process:
  // whoever calls got the offset from the ledger.
  virtual std::span<std::byte> resolve(uint64_t offset, uint64_t size_bytes) = 0;
  // The whole mapping.
  virtual std::span<std::byte> memory() = 0;

  // Returns once the bytes of the span, written by anybody who has finished, are visible to every
  // reader that the pool's scope names. READY is never said before.
  virtual Result<> publish(uint64_t offset, uint64_t size_bytes) = 0;

  // What an importer maps; borrowed, the pool keeps it open.
  virtual int descriptor() const = 0;

  virtual PoolBacking backing() const = 0;

  virtual void hold(std::unique_ptr<PoolRegistration> registration) = 0;
};

}  // namespace berth::pool
