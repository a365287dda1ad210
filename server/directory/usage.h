// Figures that follow from records. They are never stored: install() keeps them, check_invariants()
// adds them up again and compares. A draft keeps the differences that it would make, in the same
// shape, with the same account().
#pragma once

#include <cstdint>
#include <utility>

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
PoolUsage usage_of(const Pin& pin, const Replica& replica, const Pool& pool, int64_t sign);
// What one replica adds to its pool's figures; sign is +1 or -1, or counts several that are alike.
PoolUsage usage_of(const Replica& replica, const Pool& pool, int64_t sign);

struct NamespaceUsage {
  int64_t allocated_bytes = 0;  // every state: what the quota counts
  int64_t retiring_bytes = 0;   // of it
  int64_t ready_bytes = 0;
  int64_t replicas = 0;

  uint64_t held_bytes() const { return static_cast<uint64_t>(allocated_bytes - retiring_bytes); }
  NamespaceUsage& operator+=(const NamespaceUsage& other);
  friend bool operator==(const NamespaceUsage&, const NamespaceUsage&) = default;
};
NamespaceUsage namespace_usage_of(const Replica& replica, const Pool& pool, int64_t sign);

// Counts replicas that follow each other and add the same, as those of one request mostly do.
// add_up(like, count) hears of each such row, the last at the end.
template <class AddUp>
class AlikeReplicas {
 public:
  explicit AlikeReplicas(AddUp add_up) : add_up_(std::move(add_up)) {}
  ~AlikeReplicas() { flush(); }
  AlikeReplicas(const AlikeReplicas&) = delete;
  AlikeReplicas& operator=(const AlikeReplicas&) = delete;

  void add(const Replica& replica, int sign) {
    if (count_ == 0 || !is_alike(replica)) {
      flush();
      like_ = replica;
    }
    count_ += sign;
  }
  void flush() {
    if (count_ != 0) add_up_(like_, std::exchange(count_, 0));
  }

 private:
  bool is_alike(const Replica& other) const {
    return other.pool == like_.pool && other.size_bytes == like_.size_bytes &&
           other.state == like_.state && other.key.namespace_number == like_.key.namespace_number;
  }

  AddUp add_up_;
  Replica like_;
  int64_t count_ = 0;
};

// Counts that bound what one session may hold.
struct SessionUsage {
  int64_t operations = 0;
  int64_t reservations = 0;
  int64_t leases = 0;
  friend bool operator==(const SessionUsage&, const SessionUsage&) = default;
};

}  // namespace berth
