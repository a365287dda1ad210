// What makes room: it drives one eviction policy a pool, beside the directory. It is told what was
// installed and what was read, sees which pools are over their high watermark, and chooses what
// leaves, a slice at a time, until they are under the low one:
//
//   decide ─▶ commit ─▶ before_install ─▶ install ─▶ after_install        feeds the policies
//   next(directory, now) ─▶ MakeRoom{victims} ─▶ decided like any command ─▶ answered()
//
// Both watermarks are of *allocated - retiring*: an owner that is slow to acknowledge is not a
// reason to evict more. A namespace with a quota has policies of its own and makes room within
// itself. Everything here is soft: after a restart it is fed again from the directory.
//
// Pure and single-threaded, as the policies are. The work of a call is bounded by its slice and
// does not grow with the number of objects, but for start().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/directory/commands.h"
#include "server/directory/config.h"
#include "server/directory/directory.h"
#include "server/policy/eviction.h"

namespace berth::policy {

struct EvictorConfig {
  uint32_t slice_replicas = 256;  // most that one MakeRoom retires
  uint32_t move_replicas = 4096;  // most that one call hands from an old policy to a new one
  Duration retry = seconds(1);    // after a slice that found nothing that may leave
};

struct EvictorStats {
  uint64_t slices = 0;
  uint64_t evicted_replicas = 0;
  uint64_t slice_replicas_max = 0;  // largest slice
  uint64_t nothing_evictable = 0;   // slices that found nothing
  uint64_t refused = 0;             // victims that somebody had begun to read or pin
};

// One policy of one pool, for operators.
struct PolicyRow {
  PoolId pool;
  NamespaceId namespace_id;  // none: the pool's common one
  EvictionKind kind = EvictionKind::kAdaptive;
  uint64_t held = 0;
  uint64_t memory_bytes = 0;
  std::string describe;
};

class Evictor {
 public:
  Evictor(EvictorConfig config, const DirectoryConfig& directory_config);
  ~Evictor();

  // Forgets everything and takes what is READY, oldest ids first.
  void start(const Directory& directory);

  // Around Directory::install() of one decision: `commands` and `outcomes` are beside each other.
  void before_install(const Directory& directory, std::span<const Mutation> mutations);
  void after_install(const Directory& directory, std::span<const Command> commands,
                     std::span<const Result<Outcome>> outcomes,
                     std::span<const Mutation> mutations);

  // The next slice, or nothing to do now.
  std::optional<MakeRoom> next(const Directory& directory, Time now);
  // What became of it. Victims that stayed are held again.
  void answered(const Directory& directory, const MakeRoom& slice, const PerItem& outcome,
                Time now);
  // Whether next() may have something at once.
  bool has_work() const {
    return !pools_due_.empty() || !namespaces_due_.empty() || !moves_.empty() || !trims_.empty();
  }

  const EvictorStats& stats() const { return stats_; }
  const EvictionSetting& setting(const Directory& directory) const;
  std::vector<PolicyRow> rows() const;
  size_t memory_bytes() const;

 private:
  // The policies of a pool: a common one, and one for each namespace with a quota.
  struct Group {
    NamespaceId namespace_id;
    EvictionKind kind = EvictionKind::kAdaptive;
    std::unique_ptr<EvictionPolicy> policy;  // none: this place in the list is free
    bool is_leaving = false;                 // another policy was chosen: it is emptied into that
  };
  using Groups = std::vector<Group>;
  static constexpr size_t kGroupsMax = 256;  // SlotState::group

  void insert(const Replica& replica, EvictionPolicy& policy, uint8_t index, Chunk chunk);
  void insert_alone(const Directory& directory, uint32_t slot);
  void remove(const Directory& directory, uint32_t slot);
  void committed(const Directory& directory, const Commit& commit);
  void expect(const Directory& directory, std::span<const uint32_t> slots);
  void acquired(const Directory& directory, const Acquired& acquired);
  void found(const Directory& directory, const Reserve& reserve, const Reserved& reserved);
  void used(const Directory& directory, std::span<const uint32_t> slots,
            void (EvictionPolicy::*announce)());
  void skipped(const Directory& directory, const Reserve& reserve, const Reserved& reserved);
  void touched(const Directory& directory, PoolId pool, NamespaceId ns);
  void look_at(PoolId pool);
  void look_at(NamespaceId ns);
  void setting_changed(const Directory& directory);
  uint8_t group_for(const Directory& directory, PoolId pool, NamespaceId ns);
  uint8_t add_group(const Directory& directory, PoolId pool, NamespaceId ns);
  void move_slots(const Directory& directory, PoolId pool, size_t index, size_t most);
  void move_some(const Directory& directory);

  std::optional<MakeRoom> for_trim(const Directory& directory, Time now);
  std::optional<MakeRoom> for_pool(const Directory& directory, Time now);
  std::optional<MakeRoom> for_namespace(const Directory& directory, Time now);
  std::vector<ReplicaId> pick(const Directory& directory, PoolId pool, NamespaceId ns,
                              uint64_t need_bytes, Time now);
  bool went_round(const Directory& directory, PoolId pool, NamespaceId ns);
  bool may_leave(const Directory& directory, uint32_t slot, NamespaceId ns, Time now) const;
  std::optional<MakeRoom> pick_in(const Directory& directory, NamespaceId ns, uint64_t need_bytes,
                                  Time now, bool& went_round_all);
  std::optional<uint64_t> goal_of(const Directory& directory, const PoolEntry& entry);
  void rest(PoolId pool, NamespaceId ns, Time now);
  void wake_rested(Time now);

  const EvictorConfig config_;
  const DirectoryConfig& directory_config_;
  EvictionKind kind_;
  SlotStates slots_;
  std::map<PoolId, Groups> pools_;
  // Pools and namespaces to look at; of them, those that go on until they are under the low
  // watermark.
  std::set<PoolId> pools_due_;
  std::set<PoolId> making_room_;
  std::set<NamespaceId> namespaces_due_;
  std::set<NamespaceId> making_room_in_;
  std::set<JobId> trims_;
  std::set<PoolId> moves_;                   // pools with a policy that is being emptied
  std::map<PoolId, uint64_t> wanted_bytes_;  // largest object that found no room
  PoolId last_pool_;
  // How many were passed over since something was found. Those that are passed go to the young end,
  // so a pool in which a whole round found nothing has nothing to find, and rests.
  std::map<std::pair<PoolId, NamespaceId>, uint64_t> passed_;
  std::map<std::pair<PoolId, NamespaceId>, Time> resting_;
  EvictorStats stats_;
};

}  // namespace berth::policy
