// Figures that follow from records. They are never stored: install() keeps them, check_invariants()
// adds them up again and compares. A draft keeps the differences that it would make, in the same
// shape, with the same account().
#pragma once

#include <cstdint>

#include "server/directory/records.h"

namespace berth {

// Signed, so that a draft can hold differences; in the directory itself nothing is ever negative.
struct PoolUsage {
  int64_t reserved_bytes = 0;
  int64_t ready_bytes = 0;  // logical
  int64_t ready_allocated_bytes = 0;
  int64_t retiring_bytes = 0;
  int64_t quarantined_bytes = 0;
  int64_t reserved_replicas = 0;
  int64_t ready_replicas = 0;
  int64_t retiring_replicas = 0;
  int64_t quarantined_replicas = 0;
  int64_t hard_pin_bytes = 0;  // of ready_allocated: what hard pins keep
  int64_t pins = 0;

  int64_t allocated_bytes() const {
    return reserved_bytes + ready_allocated_bytes + retiring_bytes + quarantined_bytes;
  }
  // What eviction could still change: memory that retires already is on its way.
  uint64_t held_bytes() const { return static_cast<uint64_t>(allocated_bytes() - retiring_bytes); }
  int64_t replicas() const {
    return reserved_replicas + ready_replicas + retiring_replicas + quarantined_replicas;
  }
  PoolUsage& operator+=(const PoolUsage& other);
  friend bool operator==(const PoolUsage&, const PoolUsage&) = default;
};

// What a pin on this replica adds to its pool's figures.
PoolUsage usage_of(const Pin& pin, const Replica& replica, const Pool& pool, int sign);
// What one replica adds to its pool's figures; sign is +1 or -1.
PoolUsage usage_of(const Replica& replica, const Pool& pool, int sign);

struct NamespaceUsage {
  int64_t allocated_bytes = 0;  // every state: what the quota counts
  int64_t retiring_bytes = 0;   // of it
  int64_t ready_bytes = 0;
  int64_t replicas = 0;

  uint64_t held_bytes() const { return static_cast<uint64_t>(allocated_bytes - retiring_bytes); }
  NamespaceUsage& operator+=(const NamespaceUsage& other);
  friend bool operator==(const NamespaceUsage&, const NamespaceUsage&) = default;
};
NamespaceUsage namespace_usage_of(const Replica& replica, const Pool& pool, int sign);

// Counts that bound what one session may hold.
struct SessionUsage {
  int64_t operations = 0;
  int64_t reservations = 0;
  int64_t leases = 0;
  friend bool operator==(const SessionUsage&, const SessionUsage&) = default;
};

}  // namespace berth
