// The witness's account of who may make what leave: policies, pins, drains, evictions by an
// operator, quotas, the setting. Part of the Witness (witness.h), which feeds it; its lists are its
// own, taken from what was installed and answered, never from what the directory concludes.
//
// It checks: a policy chooses nothing that is leased, pinned or not READY; it has a reason, stops
// at the low watermark, and counts what retires already as gone; slices keep their bounds; what a
// drain, a close or a namespace eviction hides is a miss from then on, and nothing else is; pins,
// the setting, quotas and drains that were answered survive every crash.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/policy/evictor.h"
#include "server/sequencer/decide.h"
#include "tests/sim/judge.h"
#include "tests/sim/weather.h"

namespace berth::sim {

class RoomWitness {
 public:
  RoomWitness(Judge& judge, Random& random, const Weather& weather)
      : judge_(judge), random_(random), weather_(weather) {}

  void before_install(const Directory& directory, std::span<const Command> commands,
                      const Decision& decision, Time now);
  // Whether these commands may retire this replica.
  void check_retired(const Directory& directory, std::span<const Command> commands,
                     const Replica& before, Time now);
  void after_install(const Directory& directory, std::span<const Command> commands,
                     const Decision& decision);
  void commit_failed(const Decision& decision);
  void loaded(const Directory& fresh);
  void restarted(const Directory& directory);

  // The evictor begins anew, from what is READY.
  void evictor_started(const Directory& directory, uint64_t nothing_evictable);
  // The evictor found nothing to do.
  void evictor_rests(const Directory& directory, uint64_t nothing_evictable);
  // Its policies hold what is READY, no more and no less.
  void check_policies(const Directory& directory, const policy::Evictor& evictor);
  // Healed: what is over a watermark although it could leave; empty: nothing.
  std::string overfull(const Directory& directory, Time now) const;

 private:
  // Why a pool or a namespace may make room: once begun, it goes on down to the low watermark.
  struct Need {
    bool is_begun = false;
    uint64_t wanted_bytes = 0;  // largest object that found no room
    uint64_t failures = 0;      // slices that had found nothing when it began
  };

  EvictionSetting setting(const Directory& directory) const;
  void look_at(const Directory& directory);
  void note_skips(const Directory& directory, const Reserve& reserve, const Reserved& reserved);
  void check_slice(const Directory& directory, const MakeRoom& slice, Time now);
  void check_victims(const Directory& directory, const MakeRoom& slice, Time now);
  void check_bounds(const Directory& directory, std::span<const Command> commands,
                    const Decision& decision);
  void check_pin_edge(const Directory& directory, std::span<const Command> commands,
                      const Decision& decision, ReplicaId id, const Pin* after, Time now);
  void check_hard_pins(const Directory& directory);
  void check_acquired(const Directory& directory, std::span<const Command> commands,
                      const Decision& decision);
  void take_promises(const Directory& directory, const Command& command, const Outcome& outcome);
  void probe_everything(const Directory& directory, SessionId client);
  void probe_someone(const Directory& directory);
  bool is_hidden(const Replica& replica) const;
  bool is_pinned(ReplicaId replica, Time now) const;
  void note_replica(const Replica& replica);

  Judge& judge_;
  Random& random_;
  const Weather& weather_;

  std::map<ReplicaId, Pin> pins_;
  std::set<ReplicaId> newly_hard_;      // in this commit
  std::map<ReplicaId, Pin> pins_told_;  // of them, those that were answered
  std::map<LeaseId, std::vector<ReplicaId>> leases_;
  std::map<ReplicaId, int64_t> leased_;
  std::set<PoolId> drained_;                        // hidden until they are undrained
  std::set<PoolId> closed_;                         // hidden for good
  std::set<ReplicaId> hidden_;                      // evicted with their namespace
  std::map<NamespaceId, ReplicaId> evicted_up_to_;  // nothing above was stored then
  ReplicaId newest_;
  std::map<PoolId, Need> pool_needs_;
  std::map<NamespaceId, Need> namespace_needs_;
  std::optional<EvictionSetting> setting_;  // as told; none: the configuration's
  bool is_setting_known_ = true;
  std::map<NamespaceId, uint64_t> quotas_;
  uint64_t failures_ = 0;
};

}  // namespace berth::sim
