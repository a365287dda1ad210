#include "server/policy/eviction.h"

#include "server/policy/adaptive.h"
#include "server/policy/lfu_da.h"
#include "server/policy/lru.h"
#include "server/policy/s3fifo.h"

namespace berth::policy {

std::string_view name_of(EvictionKind kind) {
  switch (kind) {
    case EvictionKind::kLru:
      return "lru";
    case EvictionKind::kS3Fifo:
      return "s3fifo";
    case EvictionKind::kLfuDa:
      return "lfu_da";
    case EvictionKind::kAdaptive:
      return "adaptive";
  }
  return "?";
}

Result<EvictionKind> parse_eviction_kind(std::string_view text) {
  for (const EvictionKind kind : kEvictionKinds)
    if (text == name_of(kind)) return kind;
  return refuse(Reason::kInvalidArgument, "eviction policy '" + std::string(text) +
                                              "': accepted are lru, s3fifo, lfu_da and adaptive");
}

std::unique_ptr<EvictionPolicy> make_eviction_policy(EvictionKind kind, SlotStates& slots) {
  switch (kind) {
    case EvictionKind::kLru:
      return std::make_unique<Lru>(slots);
    case EvictionKind::kS3Fifo:
      return std::make_unique<S3Fifo>(slots);
    case EvictionKind::kLfuDa:
      return std::make_unique<LfuDa>(slots);
    case EvictionKind::kAdaptive:
      break;
  }
  return std::make_unique<Adaptive>(slots);
}

}  // namespace berth::policy
