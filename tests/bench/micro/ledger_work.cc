// The worker's ledger: the steps in the life of an object, over a ledger that holds others. Beside
// it: an unordered_map from ids to places. And the free page runs of a pool: runs of mixed length
// come and go in a pool full of holes, beside a stack of equal pages.
#include <memory>
#include <string_view>
#include <unordered_map>

#include "common/check.h"
#include "tests/bench/core/chance.h"
#include "tests/bench/core/objects.h"
#include "tests/bench/core/plain_registry.h"
#include "tests/bench/micro/work.h"
#include "worker/pool/ledger.h"

namespace berth::bench {
namespace {

constexpr PoolId kPool(1);
constexpr SessionId kClient(1);
constexpr uint64_t kReadBatch = 128;  // spans of one lease

// A ledger with 10,000 sealed entries, and the entries of a round beside them.
class Holder {
 public:
  Holder() {
    const uint64_t pool_bytes = 2 * kFewObjects * kPageBytes;
    BERTH_CHECK(ledger_.add_pool({kPool, kPageBytes, pool_bytes, 0}), "the pool fits");
    for (uint64_t object = 0; object < kFewObjects; ++object) {
      allocate(object);
      written(object);
      sealed(object);
    }
  }

  void allocate(uint64_t object) {
    const auto allocation = ledger_.allocate({ReplicaId(object + 1),
                                              kPool,
                                              {{1, 1}, kDigestBytes},
                                              std::string_view(digest_, kDigestBytes),
                                              0,
                                              0,
                                              kPageBytes,
                                              kClient,
                                              1});
    BERTH_CHECK(allocation.code == pool::AllocateCode::kAllocated, "there is room");
  }
  void written(uint64_t object) {
    BERTH_CHECK(ledger_.written(kClient, ReplicaId(object + 1)) == pool::WrittenCode::kWritten,
                "it was allocated");
  }
  void sealed(uint64_t object) {
    BERTH_CHECK(ledger_.sealed(ReplicaId(object + 1)), "it was written");
  }
  void reclaim(uint64_t object) {
    const ReplicaId replica(object + 1);
    ledger_.reclaim({&replica, 1});
  }
  void acked() { ledger_.acked(ledger_.take_acknowledgements()); }
  void open(uint64_t lease, uint64_t first) {
    items_.clear();
    for (uint64_t object = first; object < first + kReadBatch; ++object) {
      const ReplicaId replica(object + 1);
      const pool::LedgerEntry* entry = ledger_.find(replica);
      items_.push_back({replica, kPool, entry->offset, kPageBytes, false});
    }
    const auto opened = ledger_.open_spans(LeaseId(lease), kClient, 1, items_);
    BERTH_CHECK(opened && opened->back() == pool::SpanCode::kOpen, "it is readable");
  }
  void close(uint64_t lease) { ledger_.close_spans(LeaseId(lease)); }

 private:
  const char digest_[kDigestBytes + 1] = "0123456789abcdef0123456789abcdef";
  pool::Ledger ledger_;
  std::vector<pool::SpanRequest> items_;
};

enum class Step : uint8_t { kAllocate, kWritten, kSealed, kReclaim };

// A round of objects goes through its whole life, of which one step is measured.
Work step_work(Step measured) {
  const auto holder = std::make_shared<Holder>();
  const auto steps = [=](Step first, Step last) {
    for (auto step = static_cast<int>(first); step <= static_cast<int>(last); ++step) {
      for (uint64_t object = kFewObjects; object < kFewObjects + kRoundItems; ++object) {
        if (step == static_cast<int>(Step::kAllocate)) holder->allocate(object);
        if (step == static_cast<int>(Step::kWritten)) holder->written(object);
        if (step == static_cast<int>(Step::kSealed)) holder->sealed(object);
        if (step == static_cast<int>(Step::kReclaim)) holder->reclaim(object);
      }
    }
    if (last == Step::kReclaim) holder->acked();
  };
  const auto neighbour = [](Step step, int by) {
    return static_cast<Step>(static_cast<int>(step) + by);
  };
  Work work;
  if (measured != Step::kAllocate)
    work.prepare = [=] { steps(Step::kAllocate, neighbour(measured, -1)); };
  work.run = [=] {
    steps(measured, measured);
    return kRoundItems;
  };
  if (measured != Step::kReclaim)
    work.finish = [=] { steps(neighbour(measured, 1), Step::kReclaim); };
  return work;
}

// Both halves of a read: spans of 128 entries under one lease.
Work read_work() {
  const auto holder = std::make_shared<Holder>();
  const auto chance = std::make_shared<uint64_t>(1);
  Work work;
  work.run = [=] {
    for (uint64_t lease = 1; lease <= kRoundItems / kReadBatch; ++lease) {
      holder->open(lease, next_random(*chance) % (kFewObjects - kReadBatch));
      holder->close(lease);
    }
    return kRoundItems;
  };
  return work;
}

using PlainLedger = std::unordered_map<ReplicaId, PlainFacts>;

Work plain_step_work(Step measured) {
  const auto ledger = std::make_shared<PlainLedger>();
  for (uint64_t object = 0; object < kFewObjects; ++object)
    (*ledger)[ReplicaId(object + 1)] = {1, 0, kPageBytes, 3};
  const auto each = [=](const auto& change) {
    for (uint64_t object = kFewObjects; object < kFewObjects + kRoundItems; ++object)
      change(ReplicaId(object + 1));
    return kRoundItems;
  };
  const auto insert = [=] {
    return each([&](ReplicaId id) { (*ledger)[id] = {1, 0, kPageBytes, 1}; });
  };
  const auto erase = [=] { return each([&](ReplicaId id) { ledger->erase(id); }); };
  Work work;
  if (measured != Step::kAllocate) work.prepare = insert;
  if (measured != Step::kReclaim) work.finish = erase;
  work.run = [=]() -> uint64_t {
    if (measured == Step::kAllocate) return insert();
    if (measured == Step::kReclaim) return erase();
    return each([&](ReplicaId id) { ++ledger->find(id)->second.state; });
  };
  return work;
}

Work plain_read_work() {
  const auto ledger = std::make_shared<PlainLedger>();
  for (uint64_t object = 0; object < kFewObjects; ++object)
    (*ledger)[ReplicaId(object + 1)] = {1, 0, kPageBytes, 3};
  const auto chance = std::make_shared<uint64_t>(1);
  Work work;
  work.run = [=] {
    for (uint64_t lease = 1; lease <= kRoundItems / kReadBatch; ++lease) {
      const uint64_t first = next_random(*chance) % (kFewObjects - kReadBatch);
      for (const uint64_t change : {uint64_t{1}, UINT64_MAX})
        for (uint64_t object = first; object < first + kReadBatch; ++object)
          ledger->find(ReplicaId(object + 1))->second.offset += change;
    }
    return kRoundItems;
  };
  return work;
}

// ---- Extents

struct Run {
  uint64_t first = 0;
  uint64_t pages = 0;
};

// A pool of many small holes: every second of its runs of 1 to 16 pages is free.
struct Holes {
  Holes() {
    std::vector<Run> used;
    for (uint64_t left = kPages / 2; left > 16;) {
      const uint64_t pages = 1 + next_random(chance) % 16;
      used.push_back({*extents.allocate(pages), pages});
      left -= pages;
    }
    for (size_t i = 0; i < used.size(); i += 2) extents.free(used[i].first, used[i].pages);
  }

  static constexpr uint64_t kPages = uint64_t{1} << 20;
  pool::ExtentMap extents{kPages};
  std::vector<Run> round;
  uint64_t chance = 1;
};

Work extent_work(bool measures_allocation) {
  const auto holes = std::make_shared<Holes>();
  holes->round.resize(kRoundItems);
  const auto choose = [=] {
    for (Run& run : holes->round) run.pages = 1 + next_random(holes->chance) % 16;
  };
  const auto allocate = [=] {
    for (Run& run : holes->round) run.first = holes->extents.allocate(run.pages).value();
  };
  const auto free = [=] {
    for (const Run& run : holes->round) holes->extents.free(run.first, run.pages);
  };
  Work work = come_and_go(allocate, free, measures_allocation);
  work.prepare = [choose, rest = work.prepare] {
    choose();
    rest();
  };
  return work;
}

Work stack_work(bool measures_allocation) {
  const auto pages = std::make_shared<std::vector<uint64_t>>();
  const auto taken = std::make_shared<std::vector<uint64_t>>(kRoundItems);
  for (uint64_t page = 0; page < Holes::kPages; ++page) pages->push_back(page);
  const auto allocate = [=] {
    for (uint64_t& page : *taken) {
      page = pages->back();
      pages->pop_back();
      keep(page);
    }
  };
  const auto free = [=] {
    for (const uint64_t page : *taken) {
      pages->push_back(page);
      keep(pages->back());
    }
  };
  return come_and_go(allocate, free, measures_allocation);
}

}  // namespace

void add_ledger_cases(Cases& cases) {
  const auto add = [&](const std::string& name, Step step, const std::string& baseline) {
    cases.push_back({"ledger/" + name, [=] { return step_work(step); }, "unordered_map " + baseline,
                     [=] { return plain_step_work(step); }, true});
  };
  add("allocate", Step::kAllocate, "insert");
  add("written", Step::kWritten, "find, set");
  add("sealed", Step::kSealed, "find, set");
  add("reclaim", Step::kReclaim, "erase");
  cases.push_back(
      {"ledger/open_close", read_work, "unordered_map find, twice", plain_read_work, true});
}

void add_extent_cases(Cases& cases) {
  cases.push_back({"extents/allocate", [] { return extent_work(true); }, "stack of pages",
                   [] { return stack_work(true); }, true});
  cases.push_back({"extents/free", [] { return extent_work(false); }, "stack of pages",
                   [] { return stack_work(false); }, true});
}

}  // namespace berth::bench
