#include "worker/pool/extent_map.h"

#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <vector>

#include "tests/unit/pool/seed.h"

namespace berth::pool {
namespace {

// The same policy over one flag a page, too slow for anything but being obviously right.
class Bitmap {
 public:
  explicit Bitmap(uint64_t pages) : used_(pages, false) {}

  struct Hole {
    uint64_t first;
    uint64_t length;
  };
  std::vector<Hole> holes() const {
    std::vector<Hole> found;
    for (uint64_t page = 0; page < used_.size(); ++page) {
      if (used_[page]) continue;
      if (page > 0 && !used_[page - 1] && !found.empty())
        ++found.back().length;
      else
        found.push_back({page, 1});
    }
    return found;
  }

  std::optional<uint64_t> best_fit(uint64_t pages) const {
    std::optional<Hole> best;
    for (const Hole& hole : holes())
      if (hole.length >= pages && (!best || hole.length < best->length)) best = hole;
    if (pages == 0 || !best) return std::nullopt;
    return best->first;
  }

  void set(uint64_t first, uint64_t pages, bool used) {
    for (uint64_t page = first; page < first + pages; ++page) used_[page] = used;
  }
  bool is_free(uint64_t first, uint64_t pages) const {
    if (first + pages > used_.size()) return false;
    for (uint64_t page = first; page < first + pages; ++page)
      if (used_[page]) return false;
    return true;
  }
  uint64_t free_pages() const {
    uint64_t count = 0;
    for (const Hole& hole : holes()) count += hole.length;
    return count;
  }
  uint64_t largest() const {
    uint64_t length = 0;
    for (const Hole& hole : holes()) length = std::max(length, hole.length);
    return length;
  }

 private:
  std::vector<bool> used_;
};

TEST_CASE("a new pool is one free run", "[pool][extents]") {
  const ExtentMap map(10);
  CHECK(map.free_pages() == 10);
  CHECK(map.largest_run() == 10);
  CHECK(map.free_runs() == 1);
  CHECK(map.check_invariants().empty());
}

TEST_CASE("the run that fits best is taken, the lowest of equals", "[pool][extents]") {
  ExtentMap map(10);  // the drawing in extent_map.h
  REQUIRE(map.mark_used(2, 3));
  REQUIRE(map.mark_used(8, 1));

  CHECK(map.allocate(1) == 9u);
  CHECK(map.allocate(2) == 0u);
  CHECK(map.allocate(4) == std::nullopt);
  CHECK(map.allocate(3) == 5u);
  CHECK(map.free_pages() == 0);

  ExtentMap equal(7);
  REQUIRE(equal.mark_used(2, 1));
  REQUIRE(equal.mark_used(5, 2));
  CHECK(equal.allocate(2) == 0u);  // {0,2} and {3,2} fit alike
}

TEST_CASE("no run is handed out for nothing, and none longer than the pool", "[pool][extents]") {
  ExtentMap map(4);
  CHECK(map.allocate(0) == std::nullopt);
  CHECK(map.allocate(5) == std::nullopt);
  CHECK(map.allocate(UINT64_MAX) == std::nullopt);
  CHECK(ExtentMap(0).allocate(1) == std::nullopt);
  CHECK(map.free_pages() == 4);
}

TEST_CASE("freed pages join both neighbours, in whatever order they come back", "[pool][extents]") {
  const std::vector<std::vector<uint64_t>> orders{{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                  {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    ExtentMap map(9);
    for (int i = 0; i < 3; ++i) REQUIRE(map.allocate(3));
    for (const uint64_t third : order) map.free(third * 3, 3);
    CHECK(map.free_runs() == 1);
    CHECK(map.largest_run() == 9);
    CHECK(map.check_invariants().empty());
  }
}

TEST_CASE("exactly the run that outlived its worker is taken again, or nothing is",
          "[pool][extents]") {
  ExtentMap map(10);
  REQUIRE(map.mark_used(4, 2));
  CHECK_FALSE(map.mark_used(5, 1));  // used
  CHECK_FALSE(map.mark_used(3, 2));  // half used
  CHECK_FALSE(map.mark_used(5, 3));  // starts in use
  CHECK_FALSE(map.mark_used(9, 2));  // beyond the pool
  CHECK_FALSE(map.mark_used(10, 1));
  CHECK_FALSE(map.mark_used(1, UINT64_MAX));
  CHECK_FALSE(map.mark_used(0, 0));
  CHECK(map.free_pages() == 8);
  CHECK(map.is_used(4, 2));
  CHECK_FALSE(map.is_used(3, 2));
  CHECK_FALSE(map.is_used(5, 2));
  CHECK(map.mark_used(0, 4));
  CHECK(map.mark_used(6, 4));
  CHECK(map.is_used(0, 10));
  CHECK(map.check_invariants().empty());
}

TEST_CASE("after everything was freed the largest run is everything, whatever the mix was",
          "[pool][extents][FC-62]") {
  // 64 MiB of 4 KiB pages; 80 % of the objects one page, the rest 12 MiB, 20 000 operations.
  constexpr uint64_t kPages = 16384;
  constexpr uint64_t kLarge = 3072;
  std::mt19937_64 random(62);
  ExtentMap map(kPages);
  struct Object {
    uint64_t first;
    uint64_t pages;
  };
  std::vector<Object> held;
  uint64_t refused_with_room = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (below(random, 2) == 0 && !held.empty()) {
      const size_t victim = below(random, held.size());
      map.free(held[victim].first, held[victim].pages);
      held[victim] = held.back();
      held.pop_back();
      continue;
    }
    const uint64_t pages = below(random, 5) == 0 ? kLarge : 1;
    if (const auto first = map.allocate(pages))
      held.push_back({*first, pages});
    else if (map.free_pages() >= pages)
      ++refused_with_room;
  }
  INFO("refused although that much was free: " << refused_with_room);
  for (const Object& object : held) map.free(object.first, object.pages);
  CHECK(map.largest_run() == kPages);
  CHECK(map.free_runs() == 1);
  CHECK(map.allocate(15 * 1024) == 0u);  // 60 MiB
}

TEST_CASE("the map agrees with a bitmap under any mix of operations", "[pool][extents]") {
  for (const uint64_t seed : property_seeds(20)) {
    INFO(replay_with(seed));
    std::mt19937_64 random(seed);
    const uint64_t pages = 1 + below(random, 200);
    const uint64_t run_max = 1 + below(random, 20);
    ExtentMap map(pages);
    Bitmap bitmap(pages);
    std::vector<Bitmap::Hole> held;
    for (int step = 0; step < 500; ++step) {
      const uint64_t length = below(random, run_max + 1);
      const uint64_t kind = below(random, 5);
      if (kind < 2) {
        const auto expected = bitmap.best_fit(length);
        REQUIRE(map.allocate(length) == expected);
        if (expected) {
          bitmap.set(*expected, length, true);
          held.push_back({*expected, length});
        }
      } else if (kind < 3) {
        const uint64_t first = below(random, pages + 2);
        const bool expected = length > 0 && bitmap.is_free(first, length);
        REQUIRE(map.mark_used(first, length) == expected);
        if (expected) {
          bitmap.set(first, length, true);
          held.push_back({first, length});
        }
      } else if (!held.empty()) {
        std::swap(held[below(random, held.size())], held.back());
        map.free(held.back().first, held.back().length);
        bitmap.set(held.back().first, held.back().length, false);
        held.pop_back();
      }
      REQUIRE(map.check_invariants() == "");
      REQUIRE(map.free_pages() == bitmap.free_pages());
      REQUIRE(map.largest_run() == bitmap.largest());
      REQUIRE(map.free_runs() == bitmap.holes().size());
    }
  }
}

}  // namespace
}  // namespace berth::pool
