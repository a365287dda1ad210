#include "server/policy/adaptive.h"

#include <algorithm>
#include <bit>

namespace berth::policy {
namespace {

constexpr uint64_t kAdaptEvery = 64;  // requests
// Reuses count half after 512 requests: eight times kAdaptEvery.
constexpr double kFade = 0.917004043204671;
constexpr double kReusesMin = 64;
constexpr double kGainMin = 1.01;  // below it a change is noise
constexpr int64_t kLevelMin = 16;
constexpr int64_t kLevelMax = int64_t{1} << 20;
constexpr uint32_t kMiddleFrom = 16;  // position in the chain
constexpr uint32_t kDeepFrom = 64;
constexpr uint8_t kCodesOfOneUse = 251;

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
  for (size_t c = kUsedTwice; c < kClasses; ++c)
    credits[c] = 2 * half * static_cast<int64_t>(c - kUsedTwice + 1);
  return credits;
}

uint8_t Adaptive::class_of_uses(uint16_t uses) {
  const auto level = static_cast<size_t>(std::bit_width(static_cast<unsigned>(uses - 1)));
  return static_cast<uint8_t>(std::min(kClasses - 1, kUsedTwice + level - 1));
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
  latest_.fill(kNoSlot);
  parent_uses_ = kUsesMax;
  known_prefix_ = 0;
  is_first_chunk_ = true;
}

void Adaptive::request() {
  ++now_;
  resume();
  if (now_ % kAdaptEvery == 0) adapt();
}

void Adaptive::accessed(std::span<const uint32_t> slots) {
  for (const uint32_t slot : slots) {
    if (!slots_.is_held(slot)) continue;
    SlotState& state = slots_.at(slot);
    record_.reused(state.queue, now_ - state.stamp);
    unlink(slot);
    state.uses = limited_by_parent(static_cast<uint16_t>(state.uses + 1));
    if (state.uses > 1) ++known_prefix_;
    // Behind a chunk that is new here its own uses are of no use yet: it counts as new as well.
    state.queue = classify(state.uses, Chunk{});
    link(slot);
    is_first_chunk_ = false;
  }
}

void Adaptive::inserted(const Chunk& chunk) {
  SlotState& state = slots_.hold(chunk.slot, chunk.key_hash, kMiddle);
  uint16_t uses = 1;
  if (const std::optional<Ghost> ghost = ghosts_.take(state.fingerprint)) {
    const uint8_t code = ghost->code();
    const bool one_use = code >= kCodesOfOneUse;
    const uint8_t left_class =
        one_use ? static_cast<uint8_t>(code - kCodesOfOneUse) : class_of_uses(code);
    const uint64_t stamp = ghost->stamp(now_ >> ReuseRecord::kUnitBits) << ReuseRecord::kUnitBits;
    record_.left(left_class, stamp);
    record_.reused(left_class, now_ - stamp);
    uses = one_use ? 2 : static_cast<uint16_t>(code + 1);
  }
  // A request that begins in the middle of its chain: what comes before is here.
  if (is_first_chunk_) known_prefix_ = chunk.position;
  is_first_chunk_ = false;
  state.uses = limited_by_parent(uses);
  if (state.uses > 1) ++known_prefix_;
  state.queue = classify(state.uses, chunk);
  link(chunk.slot);
}

void Adaptive::removed(uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  unlink(slot);
  slots_.let_go(slot);
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
  const auto code =
      static_cast<uint8_t>(state.uses > 1 ? state.uses : kCodesOfOneUse + state.queue);
  return Ghost::of(state.fingerprint, state.stamp >> ReuseRecord::kUnitBits, code);
}

void Adaptive::evict(uint32_t slot) {
  const SlotState state = slots_.at(slot);
  removed(slot);
  // The record goes on counting it as long as it is remembered.
  record_.joined(state.queue, state.stamp);
  const std::optional<Ghost> displaced = ghosts_.put(ghost_of(state), size_);
  if (!displaced) return;
  const uint8_t code = displaced->code();
  record_.left(
      code >= kCodesOfOneUse ? static_cast<uint8_t>(code - kCodesOfOneUse) : class_of_uses(code),
      displaced->stamp(now_ >> ReuseRecord::kUnitBits) << ReuseRecord::kUnitBits);
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
