#include "server/policy/adaptive.h"

#include <algorithm>
#include <bit>

namespace berth::policy {
namespace {

constexpr uint64_t kAdaptEvery = 64;  // requests
// Reuses count half after 1024 requests: sixteen times kAdaptEvery.
constexpr double kFade = 0.957603280698574;
constexpr double kReusesMin = 64;
constexpr double kGainMin = 1.01;  // below it a change is noise
constexpr int64_t kLevelMin = 16;
constexpr int64_t kLevelMax = int64_t{1} << 20;
constexpr uint32_t kMiddleFrom = 16;  // position in the chain
constexpr uint32_t kDeepFrom = 64;
constexpr size_t kChainMax = 4096;  // how long a chain may be is a hint of an engine
constexpr uint8_t kCodesOfOneUse = 122;
// Something that is no tail was stored behind it: the top bit beside the uses, and of a code.
constexpr uint16_t kHasChild = 0x8000;
constexpr uint8_t kCodeHasChild = 0x80;

uint16_t uses_of(const SlotState& state) { return state.uses & (kHasChild - 1); }
bool has_child(const SlotState& state) { return (state.uses & kHasChild) != 0; }
void set_uses(SlotState& state, uint16_t uses) {
  state.uses = static_cast<uint16_t>((state.uses & kHasChild) | uses);
}
uint8_t uses_code(const Ghost& ghost) {
  return static_cast<uint8_t>(ghost.code() & (kCodeHasChild - 1));
}

}  // namespace

Adaptive::Adaptive(SlotStates& slots) : slots_(slots), credits_(credits_of(setting_)) {
  latest_.fill(kNoSlot);
}

ReuseRecord::Credits Adaptive::credits_of(const Setting& setting) {
  const int64_t half = setting.level_requests / 2;
  ReuseRecord::Credits credits{};
  credits[kTail] = setting.tails_first ? ReuseRecord::kLast : 0;
  credits[kBranch] = -2 * half;
  credits[kDeep] = -half;
  credits[kMiddle] = 0;
  credits[kShallow] = half;
  credits[kTurn] = 2 * half;
  for (size_t c = kUsedTwice; c < kClasses; ++c)
    credits[c] = 2 * half * static_cast<int64_t>(c - kUsedTwice + 1);
  return credits;
}

uint8_t Adaptive::class_of_uses(uint16_t uses) {
  const auto level = static_cast<size_t>(std::bit_width(static_cast<unsigned>(uses - 1)));
  return static_cast<uint8_t>(std::min(kClasses - 1, kUsedTwice + level - 1));
}

uint8_t Adaptive::class_of(const Ghost& ghost) {
  const uint8_t code = uses_code(ghost);
  return code >= kCodesOfOneUse ? static_cast<uint8_t>(code - kCodesOfOneUse) : class_of_uses(code);
}

uint8_t Adaptive::classify(uint16_t uses, const Chunk& chunk) const {
  if (uses > 1) return class_of_uses(uses);
  if (chunk.ends_chain) return kTail;
  // One known chunk is no sign: it is the system prompt that everybody shares.
  if (known_prefix_ > 1) return kBranch;
  if (chunk.position >= kDeepFrom) return kDeep;
  return chunk.position >= kMiddleFrom ? kMiddle : kShallow;
}

uint16_t Adaptive::limited_by_parent(uint16_t uses) {
  parent_uses_ = std::min({uses, parent_uses_, kUsesMax});
  return parent_uses_;
}

void Adaptive::link(uint32_t slot) {
  // Behind the chunk of the same request that comes before it in the chain: a list runs from the
  // heads of the newest chains to the tails of the oldest.
  SlotState& state = slots_.at(slot);
  state.stamp = now_;
  lists_[state.queue].insert_behind(slots_, latest_[state.queue], slot);
  latest_[state.queue] = slot;
  record_.joined(state.queue, now_);
  ++size_;
}

void Adaptive::unlink(uint32_t slot) {
  const SlotState& state = slots_.at(slot);
  if (latest_[state.queue] == slot) latest_[state.queue] = state.previous;
  lists_[state.queue].erase(slots_, slot);
  record_.left(state.queue, state.stamp);
  --size_;
}

void Adaptive::resume() {
  is_announced_ = false;
  is_first_chunk_ = true;
  latest_.fill(kNoSlot);
  length_ = 0;
  known_prefix_ = 0;
  parent_ = kNoSlot;
  parent_uses_ = kUsesMax;
  new_items_ = 0;
  is_turn_ = false;
}

void Adaptive::request() {
  ++now_;
  resume();
  is_announced_ = true;
  if (now_ % kAdaptEvery == 0) adapt();
}

void Adaptive::accessed(std::span<const uint32_t> slots) {
  for (const uint32_t slot : slots) {
    if (!slots_.is_held(slot)) continue;
    SlotState& state = slots_.at(slot);
    record_.reused(state.queue, now_ - state.stamp);
    unlink(slot);
    const uint16_t uses = limited_by_parent(static_cast<uint16_t>(uses_of(state) + 1));
    set_uses(state, uses);
    if (uses > 1) ++known_prefix_;
    // Behind a chunk that is new here its own uses are of no use yet: it counts as new as well.
    state.queue = classify(uses, Chunk{});
    link(slot);
    is_first_chunk_ = false;
    parent_ = slot;
    ++length_;
  }
  if (is_announced_ && parent_ != kNoSlot)
    prefixes_[length_ % prefixes_.size()] = {length_, parent_, now_};
}

// A request that begins in the middle of its chain: what comes before is here.
void Adaptive::start_behind(uint32_t position) {
  length_ = position;
  known_prefix_ = position;
  const Prefix& prefix = prefixes_[position % prefixes_.size()];
  if (position == 0 || prefix.length != position || !slots_.is_held(prefix.last)) return;
  const SlotState& last = slots_.at(prefix.last);
  if (last.stamp != prefix.stamp) return;
  parent_ = prefix.last;
  limited_by_parent(uses_of(last));
}

void Adaptive::inserted(const Chunk& chunk) {
  SlotState& state = slots_.hold(chunk.slot, chunk.key_hash, kMiddle);
  uint16_t uses = 1;
  if (const std::optional<Ghost> ghost = ghosts_.take(state.fingerprint)) {
    const uint8_t left_class = class_of(*ghost);
    const uint64_t stamp = ghost->stamp(now_ >> ReuseRecord::kUnitBits) << ReuseRecord::kUnitBits;
    record_.left(left_class, stamp);
    record_.reused(left_class, now_ - stamp);
    const uint8_t code = uses_code(*ghost);
    uses = code >= kCodesOfOneUse ? 2 : static_cast<uint16_t>(code + 1);
    if ((ghost->code() & kCodeHasChild) != 0) state.uses = kHasChild;
  }
  if (is_first_chunk_) start_behind(chunk.position);
  is_first_chunk_ = false;
  const bool follows_end = parent_ != kNoSlot && !has_child(slots_.at(parent_));
  if (follows_end && !chunk.ends_chain) slots_.at(parent_).uses |= kHasChild;
  uses = limited_by_parent(uses);
  set_uses(state, uses);
  if (uses > 1) ++known_prefix_;
  state.queue = classify(uses, chunk);
  if (state.queue == kBranch) state.queue = class_behind_prefix(chunk.position, follows_end);
  link(chunk.slot);
  parent_ = chunk.slot;
  ++length_;
}

uint8_t Adaptive::class_behind_prefix(uint32_t position, bool follows_end) {
  if (new_items_++ == 0) {
    is_turn_ = follows_end;
    turn_from_ = position;
    prefix_end_ = parent_;
  }
  // More than one turn adds. Nobody goes on from there, as a rule, nor from what comes before,
  // unless that was used more often than twice.
  if (is_turn_ && position >= turn_from_ + kTurnMax) {
    is_turn_ = false;
    count_as_branch(kUsedTwice, prefix_end_, length_);
    count_as_branch(kTurn, latest_[kTurn], new_items_);
  }
  return is_turn_ ? kTurn : kBranch;
}

// The part of a chain that ends with `last`, if that is of this class: its chunks lie one behind
// the other, its head first.
void Adaptive::count_as_branch(uint8_t chunk_class, uint32_t last, size_t most) {
  if (last == kNoSlot) return;
  const uint64_t stamp = slots_.at(last).stamp;
  const auto belongs = [&](uint32_t slot) {
    return slot != kNoSlot && slots_.at(slot).queue == chunk_class &&
           slots_.at(slot).stamp == stamp;
  };
  if (!belongs(last)) return;
  uint32_t slot = last;
  for (size_t i = 1; i < std::min(most, kChainMax) && belongs(slots_.at(slot).previous); ++i)
    slot = slots_.at(slot).previous;
  while (slot != kNoSlot) {
    const uint32_t next = slot == last ? kNoSlot : slots_.at(slot).next;
    unlink(slot);
    slots_.at(slot).queue = kBranch;
    link(slot);
    slot = next;
  }
}

void Adaptive::removed(uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  unlink(slot);
  slots_.let_go(slot);
  if (parent_ == slot) parent_ = kNoSlot;
  if (prefix_end_ == slot) prefix_end_ = kNoSlot;
}

void Adaptive::renew(uint32_t slot) {
  unlink(slot);
  SlotState& state = slots_.at(slot);
  state.stamp = now_;
  lists_[state.queue].push_front(slots_, slot);
  record_.joined(state.queue, now_);
  ++size_;
}

uint32_t Adaptive::least_valuable(const PassedByClass& passed) const {
  uint32_t least = kNoSlot;
  int64_t least_value = INT64_MAX;
  for (size_t c = 0; c < kClasses; ++c) {
    if (lists_[c].empty() || passed[c].is_over) continue;
    const uint32_t slot = lists_[c].back();
    const int64_t value = static_cast<int64_t>(slots_.at(slot).stamp) + credits_[c];
    if (value >= least_value) continue;
    least_value = value;
    least = slot;
  }
  return least;
}

Ghost Adaptive::ghost_of(const SlotState& state) {
  const uint16_t uses = uses_of(state);
  const auto code = static_cast<uint8_t>((uses > 1 ? uses : kCodesOfOneUse + state.queue) |
                                         (has_child(state) ? kCodeHasChild : 0));
  return Ghost::of(state.fingerprint, state.stamp >> ReuseRecord::kUnitBits, code);
}

void Adaptive::evict(uint32_t slot) {
  const SlotState state = slots_.at(slot);
  removed(slot);
  // The record goes on counting it as long as it is remembered, in the class that is remembered.
  const Ghost ghost = ghost_of(state);
  record_.joined(class_of(ghost), state.stamp);
  if (const std::optional<Ghost> displaced = ghosts_.put(ghost, size_))
    record_.left(class_of(*displaced), displaced->stamp(now_ >> ReuseRecord::kUnitBits)
                                           << ReuseRecord::kUnitBits);
}

void Adaptive::pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) {
  PassedByClass passed;
  const auto classes = std::count_if(lists_.begin(), lists_.end(),
                                     [](const SlotList& list) { return !list.empty(); });
  const size_t looks = kSkipsMax / static_cast<size_t>(std::max<ptrdiff_t>(1, classes));
  while (n > 0) {
    const uint32_t slot = least_valuable(passed);
    if (slot == kNoSlot) return;
    if (eligible(slot)) {
      evict(slot);
      victims.push_back(slot);
      --n;
      continue;
    }
    const uint8_t queue = slots_.at(slot).queue;
    Passed& here = passed[queue];
    if (here.count++ == 0) here.first = slot;
    renew(slot);  // somebody reads it or wants it kept: in use now
    here.is_over = here.count == looks || lists_[queue].back() == here.first;
  }
}

void Adaptive::adapt() {
  record_.advance(now_);
  if (record_.reuses() >= kReusesMin) {
    Setting best = setting_;
    double best_hits = record_.hits_with(credits_, size_) * kGainMin;
    const auto consider = [&](const Setting& candidate) {
      const double hits = record_.hits_with(credits_of(candidate), size_);
      if (hits <= best_hits) return;
      best = candidate;
      best_hits = hits;
    };
    for (int64_t level = kLevelMin; level <= kLevelMax; level *= 2)
      consider({level, setting_.tails_first});
    consider({setting_.level_requests, !setting_.tails_first});
    setting_ = best;
    credits_ = credits_of(best);
  }
  record_.fade(kFade);
}

std::string Adaptive::describe() const {
  return "one level of use is worth " + std::to_string(setting_.level_requests) + " requests; " +
         (setting_.tails_first ? "tails of prompts first" : "tails of prompts like other chunks");
}

}  // namespace berth::policy
