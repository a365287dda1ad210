// Which replica of a full pool goes first. One policy serves one pool; the driver beside the
// directory tells it what was installed and read, and asks it for victims when the pool is over its
// watermark.
//
// Pure and single-threaded: no clock but the requests it is told of, no chance, no I/O. What it
// knows is soft: it may be dropped at any time (a restart, a change of policy) and be fed again.
// Every call costs the same whatever the number of objects; only growth of a table, which is
// amortised, does not.
//
//   request()                      a new request; what follows belongs to it, in chain order
//   accessed({s0, s1, s2})         its prefix was found here
//   resume()                       later, when the rest of its chain was stored
//   inserted({s9, hash, 3})        the chunk behind it is new
//   pick(n, eligible, victims)     n slots leave: those worth least
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/policy/eviction_kind.h"
#include "server/policy/slot_states.h"

namespace berth::policy {

// A chunk of a prompt that became resident.
struct Chunk {
  uint32_t slot = 0;
  uint64_t key_hash = 0;
  uint32_t position = 0;    // index in its chain; 0 also where the driver does not know it
  bool ends_chain = false;  // the prompt is known to have no chunk behind this one
};

// Whether a slot may be evicted now (nobody reads it, it is not pinned, it is READY).
using Eligible = std::function<bool(uint32_t slot)>;

class EvictionPolicy {
 public:
  // Candidates that one pick() passes over because they are not eligible. It then answers with
  // fewer victims, and the next call goes on behind those that it passed.
  static constexpr size_t kSkipsMax = 64;

  virtual ~EvictionPolicy() = default;

  virtual void request() = 0;
  // What follows belongs to a request that was announced before, with others in between.
  virtual void resume() {}
  // Slots that this policy does not hold are ignored: they were picked a moment ago.
  virtual void accessed(std::span<const uint32_t> slots) = 0;
  // A key that is about to be inserted: brings what is known of it into the cache.
  virtual void expect(uint64_t /*key_hash*/) const {}
  // The slot must not be held by any policy.
  virtual void inserted(const Chunk& chunk) = 0;
  // Gone for another reason than pick(): nothing is remembered of it. Not held: ignored.
  virtual void removed(uint32_t slot) = 0;
  // Appends up to `n` slots to `victims`, least valuable first, and forgets them (what a policy
  // remembers of evicted keys it keeps). A victim whose eviction came to nothing is inserted again.
  virtual void pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) = 0;

  // Slots held.
  virtual size_t size() const = 0;
  // What this policy occupies beside the shared table of slots.
  virtual size_t memory_bytes() const = 0;
  // How it is set at present, for operators: one line.
  virtual std::string describe() const = 0;
};

// `slots` is shared by the policies of all pools and outlives them.
std::unique_ptr<EvictionPolicy> make_eviction_policy(EvictionKind kind, SlotStates& slots);

}  // namespace berth::policy
