// Bugs that are planted on purpose, to show that every check of the simulator can fail. Product
// code knows nothing of them: each is made at the boundary, by changing a command, a message, a
// decision or what a process does.
//
// A new check comes with a row here; planted_test.cc demands that each is caught.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::sim {

enum class Plant : uint8_t {
  kNone,
  kFreeOnTimeout,
  kRevokeWithoutAsking,
  kLostCommitAcked,
  kReuseBeforeFreed,
  kReadyBeforeWritten,
  kLeaseForgottenOnRenew,
  kReattachJudgesBeforeMarker,
  kReleaseOtherSessionsLease,
  kDoubleGrantOnRetry,
  kStaleIncarnationAccepted,
  kSilentMeansDead,
  kAcquireTakesNoLease,
  kStallAges,
  kEpochNotRaised,
  kIdentityNotSynced,
  kGrantPastBudget,
  kAbortFreesUnderWriter,
  kReclaimNeverAsked,
  kEvictionForgotten,
  kOrphanReleasedEarly,
};

struct PlantRow {
  Plant plant;
  std::string_view name;
  std::string_view what;
};

inline constexpr std::array kPlants{
    PlantRow{Plant::kFreeOnTimeout, "free_on_timeout",
             "an overdue write is freed instead of quarantined"},
    PlantRow{Plant::kRevokeWithoutAsking, "revoke_without_asking",
             "an over-age lease is released before its reader has stopped"},
    PlantRow{Plant::kLostCommitAcked, "lost_commit_acked",
             "replies are sent although the batch was not made durable"},
    PlantRow{Plant::kReuseBeforeFreed, "reuse_before_freed",
             "a worker reuses the pages of a READY replica that nobody reclaimed"},
    PlantRow{Plant::kReadyBeforeWritten, "ready_before_written",
             "a grant is committed before its bytes are there"},
    PlantRow{Plant::kLeaseForgottenOnRenew, "lease_forgotten_on_renew",
             "a renewed lease is forgotten"},
    PlantRow{Plant::kReattachJudgesBeforeMarker, "reattach_judges_before_marker",
             "what a re-attaching worker has not named yet is judged missing"},
    PlantRow{Plant::kReleaseOtherSessionsLease, "release_other_sessions_lease",
             "a release ends the lease of another session"},
    PlantRow{Plant::kDoubleGrantOnRetry, "double_grant_on_retry",
             "a repeated Reserve is granted again"},
    PlantRow{Plant::kStaleIncarnationAccepted, "stale_incarnation_accepted",
             "commands of a Link that was taken over are carried out"},
    PlantRow{Plant::kSilentMeansDead, "silent_means_dead",
             "a worker that missed its heartbeats is fenced"},
    PlantRow{Plant::kAcquireTakesNoLease, "acquire_takes_no_lease",
             "an acquire is answered, and nothing protects it"},
    PlantRow{Plant::kStallAges, "stall_ages", "the server's own stall ages every deadline"},
    PlantRow{Plant::kEpochNotRaised, "epoch_not_raised", "a restart goes on under the old epoch"},
    PlantRow{Plant::kIdentityNotSynced, "identity_not_synced",
             "identity is given without an fsync"},
    PlantRow{Plant::kGrantPastBudget, "grant_past_budget",
             "the server grants more than a pool holds"},
    PlantRow{Plant::kAbortFreesUnderWriter, "abort_frees_under_writer",
             "a cancelled write is aborted before its writer has stopped"},
    PlantRow{Plant::kReclaimNeverAsked, "reclaim_never_asked",
             "owners are not asked for what retires"},
    PlantRow{Plant::kEvictionForgotten, "eviction_forgotten",
             "a restart brings back what was evicted"},
    PlantRow{Plant::kOrphanReleasedEarly, "orphan_released_early",
             "a dead worker's memory is given back while an engine maps it"},
};

inline std::optional<Plant> plant_named(std::string_view name) {
  for (const PlantRow& row : kPlants)
    if (row.name == name) return row.plant;
  return std::nullopt;
}

}  // namespace berth::sim
