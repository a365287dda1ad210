// The eviction policies, and ARC for comparison, over a full pool: chains of new chunks come,
// chains are read, victims are picked. Beside them: a std::list in order of use.
#include <list>
#include <memory>
#include <string_view>

#include "common/check.h"
#include "server/policy/eviction.h"
#include "tests/bench/arc.h"
#include "tests/bench/core/chance.h"
#include "tests/bench/micro/work.h"

namespace berth::bench {
namespace {

constexpr uint32_t kHeld = 100'000;
constexpr uint32_t kChain = 16;

// The plainest policy.
class PlainList final : public policy::EvictionPolicy {
 public:
  void request() override {}
  void accessed(std::span<const uint32_t> slots) override {
    for (const uint32_t slot : slots) order_.splice(order_.begin(), order_, places_[slot]);
  }
  void inserted(const policy::Chunk& chunk) override {
    if (chunk.slot >= places_.size()) places_.resize(chunk.slot + 1);
    order_.push_front(chunk.slot);
    places_[chunk.slot] = order_.begin();
  }
  void removed(uint32_t slot) override { order_.erase(places_[slot]); }
  void pick(size_t n, const policy::Eligible& eligible, std::vector<uint32_t>& victims) override {
    for (; n > 0 && !order_.empty() && eligible(order_.back()); --n) {
      victims.push_back(order_.back());
      order_.pop_back();
    }
  }
  size_t size() const override { return order_.size(); }
  size_t memory_bytes() const override { return places_.size() * sizeof(places_[0]); }
  std::string describe() const override { return "a list in order of use"; }

 private:
  std::list<uint32_t> order_;
  std::vector<std::list<uint32_t>::iterator> places_;
};

struct Pool {
  explicit Pool(std::string_view name) {
    if (name == "list") {
      policy = std::make_unique<PlainList>();
    } else if (name == "arc") {
      policy = std::make_unique<Arc>(kHeld);
    } else {
      policy = policy::make_eviction_policy(policy::parse_eviction_kind(name).value(), slots);
    }
    std::vector<uint32_t> all(kHeld);
    for (uint32_t slot = 0; slot < kHeld; ++slot) all[slot] = slot;
    insert(all);
    // What was read decides what the policies do.
    for (uint32_t i = 0; i < 2 * kHeld / kChain; ++i) access(some_chain());
  }

  // As chains of new chunks.
  void insert(const std::vector<uint32_t>& free_slots) {
    for (uint32_t i = 0; i < free_slots.size(); ++i) {
      if (i % kChain == 0) policy->request();
      policy->inserted({free_slots[i], next_random(chunks), i % kChain, i % kChain == kChain - 1});
    }
  }
  // Low numbers more often.
  uint32_t some_chain() {
    const uint64_t chain_count = kHeld / kChain;
    return static_cast<uint32_t>(next_random(chance) % (1 + next_random(chance) % chain_count)) *
           kChain;
  }
  void access(uint32_t first) {
    uint32_t chain[kChain];
    for (uint32_t i = 0; i < kChain; ++i) chain[i] = first + i;
    policy->request();
    policy->accessed(chain);
  }
  void pick() {
    while (victims.size() < kRoundItems)
      policy->pick(
          kRoundItems - victims.size(), [](uint32_t) { return true; }, victims);
  }
  void refill() {
    insert(victims);
    victims.clear();
  }

  policy::SlotStates slots;
  std::unique_ptr<policy::EvictionPolicy> policy;
  std::vector<uint32_t> victims;
  std::vector<uint32_t> chains;
  uint64_t chunks = 1;
  uint64_t chance = 2;
};

Work insert_work(const std::string& name) {
  const auto pool = std::make_shared<Pool>(name);
  Work work;
  work.prepare = [=] { pool->pick(); };
  work.run = [=] {
    pool->refill();
    return kRoundItems;
  };
  return work;
}

Work access_work(const std::string& name) {
  const auto pool = std::make_shared<Pool>(name);
  Work work;
  work.prepare = [=] {
    pool->chains.clear();
    for (uint64_t i = 0; i < kRoundItems / kChain; ++i) pool->chains.push_back(pool->some_chain());
  };
  work.run = [=] {
    for (const uint32_t first : pool->chains) pool->access(first);
    return kRoundItems;
  };
  return work;
}

Work pick_work(const std::string& name) {
  const auto pool = std::make_shared<Pool>(name);
  Work work;
  work.run = [=] {
    pool->pick();
    return kRoundItems;
  };
  work.finish = [=] { pool->refill(); };
  return work;
}

}  // namespace

void add_policy_cases(Cases& cases) {
  std::vector<std::string> names{"arc"};
  for (const policy::EvictionKind kind : policy::kEvictionKinds)
    names.emplace_back(policy::name_of(kind));
  for (const std::string& name : names) {
    const auto add = [&](const std::string& what, Work (*make)(const std::string&)) {
      cases.push_back({"policy/" + name + "/" + what, [=] { return make(name); }, "std::list",
                       [=] { return make("list"); }, name != "arc"});
    };
    add("insert", insert_work);
    add("access", access_work);
    add("pick", pick_work);
  }
}

}  // namespace berth::bench
