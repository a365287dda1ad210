// The free page runs of one pool. Pure bookkeeping: page numbers only, no memory, no bytes.
//
// Policy: best fit, the lowest offset among equals. Best fit leaves the long runs whole for the few
// large objects (12 MiB among 4 KiB ones is a real mix); the lowest offset packs equal objects
// together at the bottom, so that what they leave coalesces. Adjacent free runs always merge, so a
// pool from which everything was freed is one run again, whatever happened before.
//
//   pages      0 1 2 3 4 5 6 7 8 9        free runs {0,2} {5,3} {9,1}
//              . . # # # . . . # .
//   allocate(1) -> 9 (fits exactly)       allocate(2) -> 0       allocate(4) -> none
//
// Every operation is O(log free runs); a free run costs about 40 bytes, a used page nothing.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace berth::pool {

class ExtentMap {
 public:
  explicit ExtentMap(uint64_t page_count);

  // The first page of a run that is now used; none when no free run is that long, or pages is zero.
  std::optional<uint64_t> allocate(uint64_t pages);

  // Gives back any part of what is used. Freeing a free page is our own bug and ends the process.
  void free(uint64_t first, uint64_t pages);

  // Takes exactly this run, for a pool that outlived its worker. False, and nothing changes, when
  // any page of it is used or beyond the pool.
  [[nodiscard]] bool mark_used(uint64_t first, uint64_t pages);

  bool is_used(uint64_t first, uint64_t pages) const;  // every page of the run is

  uint64_t page_count() const { return page_count_; }
  uint64_t free_pages() const { return free_pages_; }
  uint64_t used_pages() const { return page_count_ - free_pages_; }
  uint64_t largest_run() const { return by_length_.empty() ? 0 : by_length_.rbegin()->length; }
  uint64_t free_runs() const { return by_first_.size(); }

  // The first broken invariant as a sentence; empty when all hold.
  std::string check_invariants() const;

 private:
  struct Run {
    uint64_t length;
    uint64_t first;
    friend auto operator<=>(const Run&, const Run&) = default;
  };
  using ByFirst = absl::btree_map<uint64_t, uint64_t>;

  void insert(uint64_t first, uint64_t length);
  void erase(ByFirst::const_iterator run);
  // The free run with the greatest first page that is at most `page`, or end().
  ByFirst::const_iterator at_or_before(uint64_t page) const;
  bool is_inside(uint64_t first, uint64_t pages) const;

  uint64_t page_count_;
  uint64_t free_pages_ = 0;
  ByFirst by_first_;                // first page -> length
  absl::btree_set<Run> by_length_;  // the same runs, shortest first
};

}  // namespace berth::pool
