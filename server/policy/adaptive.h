// Berth's own policy. A chunk is worth the time of its last touch plus a credit for its class; the
// lowest sum goes first. Time counts requests.
//
//   class                                             credit, in levels
//   tail: last chunk of a prompt, never used again    below everything (while that pays)
//   branch: new chunk behind a prefix that was known  -1
//   new chunk of a new prompt, by its depth           +1/2, 0, -1/2  (from 16 chunks, from 64)
//   turn: one of few new chunks behind the end        +1
//     of a chain that was known
//   used 2, 3-4, 5-8, ... 65 or more times            1, 2, 3, ... 7
//
// What one level is worth adapts: of every reuse, also of evicted chunks that are remembered, it is
// known at what age and in which class it came; so now and then each power of two is asked how many
// reuses a pool of this size would meet with it (reuse_record.h), and the best one is taken, if it
// is better by a hundredth.
//
// A chain that goes on from its end is a conversation, and if little is added, an answer and the
// next question, it will go on again. What branches off from the middle of a chain is one question
// of many, and what adds much is the last of its conversation: its prefix counts as a branch, too.
//
// Prefixes: a chunk never has more uses than its parent, and of what one request touched the tail
// goes before the head. So a chain shrinks from its end, and what stays can be hit.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "server/policy/eviction.h"
#include "server/policy/ghosts.h"
#include "server/policy/reuse_record.h"

namespace berth::policy {

class Adaptive final : public EvictionPolicy {
 public:
  explicit Adaptive(SlotStates& slots);

  void request() override;
  void resume() override;
  void accessed(std::span<const uint32_t> slots) override;
  void expect(uint64_t key_hash) const override { ghosts_.prefetch(fingerprint_of(key_hash)); }
  void inserted(const Chunk& chunk) override;
  void removed(uint32_t slot) override;
  void pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) override;

  size_t size() const override { return size_; }
  size_t memory_bytes() const override { return sizeof(*this) + ghosts_.memory_bytes(); }
  std::string describe() const override;

  // What is learned.
  struct Setting {
    int64_t level_requests = 512;  // what one level is worth
    bool tails_first = true;
    friend bool operator==(const Setting&, const Setting&) = default;
  };
  const Setting& setting() const { return setting_; }

 private:
  enum Class : uint8_t { kTail, kBranch, kDeep, kMiddle, kShallow, kTurn, kUsedTwice };
  // A ghost's code has seven bits for the uses, or for the class of what was used once.
  static constexpr uint16_t kUsesMax = 121;
  static constexpr uint32_t kTurnMax = 4;  // new chunks of one turn, beside its tail
  static constexpr size_t kClasses = ReuseRecord::kClasses;

  static ReuseRecord::Credits credits_of(const Setting& setting);
  static uint8_t class_of_uses(uint16_t uses);
  static uint8_t class_of(const Ghost& ghost);
  static Ghost ghost_of(const SlotState& state);

  uint8_t classify(uint16_t uses, const Chunk& chunk) const;
  uint16_t limited_by_parent(uint16_t uses);
  void start_behind(uint32_t position);
  uint8_t class_behind_prefix(uint32_t position, bool follows_end);
  void count_as_branch(uint8_t chunk_class, uint32_t last, size_t most);
  void link(uint32_t slot);
  void unlink(uint32_t slot);
  void renew(uint32_t slot);
  // What one pick passed over, by class. A class that nothing may leave must not hide the others,
  // so each has its share of the looks.
  struct Passed {
    uint32_t first = kNoSlot;
    size_t count = 0;
    bool is_over = false;
  };
  using PassedByClass = std::array<Passed, kClasses>;
  // kNoSlot: every class is empty or over.
  uint32_t least_valuable(const PassedByClass& passed) const;
  void evict(uint32_t slot);
  void adapt();

  SlotStates& slots_;
  std::array<SlotList, kClasses> lists_;
  size_t size_ = 0;
  Ghosts ghosts_;
  ReuseRecord record_;
  Setting setting_;
  ReuseRecord::Credits credits_;
  uint64_t now_ = 1;  // requests so far

  // Prefixes that were found lately, by their length. Where others came in between, the position of
  // a new chunk says which one it continues, as a rule.
  struct Prefix {
    uint32_t length = 0;
    uint32_t last = kNoSlot;
    uint64_t stamp = 0;
  };
  std::array<Prefix, 64> prefixes_{};

  // Of the present request.
  bool is_announced_ = false;
  bool is_first_chunk_ = true;
  std::array<uint32_t, kClasses> latest_;  // the slot that was last put into each list
  uint32_t length_ = 0;                    // of its chain so far
  uint32_t known_prefix_ = 0;              // chunks of it that were seen before
  uint32_t parent_ = kNoSlot;              // the last chunk so far, if it is here
  uint16_t parent_uses_ = kUsesMax;
  // What is new behind the known prefix. A chunk may have several items, of one position.
  size_t new_items_ = 0;
  bool is_turn_ = false;
  uint32_t turn_from_ = 0;  // position
  uint32_t prefix_end_ = kNoSlot;
};

}  // namespace berth::policy
