// A ledger with one pool of 8 pages of 4 KiB, and the few words that its tests are written in.
// When the rig goes, the invariants of its ledger must hold.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/pool/ledger.h"

namespace berth::pool {

inline constexpr PoolId kPool = make_id<PoolId>(1, 7);
inline constexpr PoolId kOtherPool = make_id<PoolId>(1, 8);
inline constexpr SessionId kAnn{11};
inline constexpr SessionId kBob{12};
inline constexpr uint64_t kPage = 4096;
inline constexpr LedgerNamespace kNamespace{.fingerprint = {1, 2}, .digest_bytes = 16};

inline ReplicaId replica(uint64_t counter) { return make_id<ReplicaId>(1, counter); }
inline LeaseId lease(uint64_t counter) { return make_id<LeaseId>(1, counter); }

struct LedgerRig {
  Ledger ledger;

  explicit LedgerRig(uint64_t pages = 8, uint64_t budget_pages = 0, LedgerLimits limits = {})
      : ledger(limits) {
    REQUIRE(ledger.add_pool({.pool = kPool,
                             .page_bytes = kPage,
                             .capacity_bytes = pages * kPage,
                             .budget_bytes = budget_pages * kPage}));
  }

  LedgerGrant grant(uint64_t id, uint64_t size_bytes = kPage, SessionId client = kAnn) {
    digest_ = "digest " + std::string(9 - std::to_string(id).size(), '0') + std::to_string(id);
    return {.replica = replica(id),
            .pool = kPool,
            .name_space = kNamespace,
            .digest = digest_,
            .size_bytes = size_bytes,
            .client = client,
            .operation = id};
  }

  AllocateCode allocate(uint64_t id, uint64_t size_bytes = kPage, SessionId client = kAnn) {
    return ledger.allocate(grant(id, size_bytes, client)).code;
  }
  void store(uint64_t id, uint64_t size_bytes = kPage, SessionId client = kAnn) {
    REQUIRE(allocate(id, size_bytes, client) == AllocateCode::kAllocated);
    REQUIRE(ledger.written(client, replica(id)) == WrittenCode::kWritten);
    REQUIRE(ledger.sealed(replica(id)));
  }

  // As the server would name it.
  SpanRequest span_of(uint64_t id) {
    const LedgerEntry& entry = *ledger.find(replica(id));
    return {.replica = entry.replica,
            .pool = ledger.pool_of(entry),
            .offset = entry.offset,
            .size_bytes = entry.size_bytes};
  }
  void open(uint64_t lease_id, SessionId client, const std::vector<uint64_t>& ids) {
    std::vector<SpanRequest> items;
    for (const uint64_t id : ids) items.push_back(span_of(id));
    const auto codes = ledger.open_spans(lease(lease_id), client, lease_id, items);
    REQUIRE(codes);
    REQUIRE(*codes == std::vector<SpanCode>(ids.size(), SpanCode::kOpen));
  }
  void reclaim(uint64_t id) {
    const ReplicaId asked = replica(id);
    ledger.reclaim({&asked, 1});
  }
  void confirm(uint64_t id) {
    const ReplicaId acked = replica(id);
    ledger.acked({&acked, 1});
  }

  LedgerState state(uint64_t id) const { return ledger.find(replica(id))->state; }
  bool is_held(uint64_t id) const { return ledger.find(replica(id)) != nullptr; }
  LedgerUsage usage() const { return *ledger.usage(kPool); }
  uint64_t used_pages() const { return usage().allocated_bytes / kPage; }

  ~LedgerRig() { CHECK(ledger.check_invariants() == ""); }

 private:
  std::string digest_;
};

inline std::vector<ReplicaId> replicas(const std::vector<uint64_t>& ids) {
  std::vector<ReplicaId> out;
  for (const uint64_t id : ids) out.push_back(replica(id));
  return out;
}

}  // namespace berth::pool
