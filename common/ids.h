// Strong identifiers. A PoolId cannot be passed where a LeaseId is expected, and no id turns into a
// number by itself. Zero is "none" and is never assigned.
//
// Ids that the server hands out carry the server epoch that made them in their high 24 bits and a
// counter in the low 40, so an id of one epoch can never be made again by another (see make_id).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace berth {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr bool valid() const { return value_ != 0; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  uint64_t value_ = 0;
};

// The record type is the tag: Id<Pool> names a Pool.
using NamespaceId = Id<struct Namespace>;
using SessionId = Id<struct Session>;
using PoolId = Id<struct Pool>;
using ReplicaId = Id<struct Replica>;
using LeaseId = Id<struct Lease>;
using JobId = Id<struct Job>;

// A session numbers its own mutating operations, from 1 upwards.
using OperationNumber = uint64_t;
// Raised at every re-attach of a session; commands queued under an older one are refused.
using Incarnation = uint32_t;
// Raised at every server start above every epoch that was seen before. 24 bits are used.
using Epoch = uint32_t;

inline constexpr int kIdCounterBits = 40;
inline constexpr uint64_t kIdCounterMax = (uint64_t{1} << kIdCounterBits) - 1;
inline constexpr Epoch kEpochMax = (Epoch{1} << 24) - 1;

template <class IdType>
constexpr IdType make_id(Epoch epoch, uint64_t counter) {
  return IdType((uint64_t{epoch} << kIdCounterBits) | (counter & kIdCounterMax));
}
template <class Tag>
constexpr Epoch epoch_of(Id<Tag> id) {
  return static_cast<Epoch>(id.value() >> kIdCounterBits);
}

// 128 random bits: store ids, session tokens, boot ids, namespace fingerprints.
struct Id128 {
  uint64_t high = 0;
  uint64_t low = 0;

  constexpr bool valid() const { return high != 0 || low != 0; }
  friend constexpr auto operator<=>(const Id128&, const Id128&) = default;
};

using StoreId = Id128;
using Token = Id128;
using BootId = Id128;
using Fingerprint = Id128;

}  // namespace berth

template <class Tag>
struct std::hash<berth::Id<Tag>> {
  size_t operator()(berth::Id<Tag> id) const noexcept {
    // Fibonacci hashing: consecutive ids spread over the table.
    return static_cast<size_t>(id.value() * 0x9E3779B97F4A7C15u);
  }
};
