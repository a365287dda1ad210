#include "worker/pool/extent_map.h"

#include <iterator>

#include "common/check.h"

namespace berth::pool {

ExtentMap::ExtentMap(uint64_t page_count) : page_count_(page_count) {
  if (page_count > 0) insert(0, page_count);
}

std::optional<uint64_t> ExtentMap::allocate(uint64_t pages) {
  if (pages == 0) return std::nullopt;
  const auto fit = by_length_.lower_bound(Run{pages, 0});
  if (fit == by_length_.end()) return std::nullopt;
  const Run run = *fit;
  erase(by_first_.find(run.first));
  if (run.length > pages) insert(run.first + pages, run.length - pages);
  return run.first;
}

void ExtentMap::free(uint64_t first, uint64_t pages) {
  BERTH_CHECK(pages > 0 && is_used(first, pages), "only pages in use are freed");
  uint64_t begin = first;
  uint64_t end = first + pages;
  if (const auto after = by_first_.find(end); after != by_first_.end()) {
    end += after->second;
    erase(after);
  }
  const auto before = at_or_before(begin);
  if (before != by_first_.end() && before->first + before->second == begin) {
    begin = before->first;
    erase(before);
  }
  insert(begin, end - begin);
}

bool ExtentMap::mark_used(uint64_t first, uint64_t pages) {
  if (pages == 0 || !is_inside(first, pages)) return false;
  const auto run = at_or_before(first);
  if (run == by_first_.end()) return false;
  const uint64_t run_first = run->first;
  const uint64_t run_end = run_first + run->second;
  const uint64_t end = first + pages;
  if (run_end < end) return false;
  erase(run);
  if (run_first < first) insert(run_first, first - run_first);
  if (end < run_end) insert(end, run_end - end);
  return true;
}

bool ExtentMap::is_used(uint64_t first, uint64_t pages) const {
  if (!is_inside(first, pages)) return false;
  // The last free run that starts before the end reaches furthest.
  const auto run = at_or_before(first + pages - (pages > 0 ? 1 : 0));
  return run == by_first_.end() || run->first + run->second <= first;
}

void ExtentMap::insert(uint64_t first, uint64_t length) {
  by_first_.emplace(first, length);
  by_length_.insert(Run{length, first});
  free_pages_ += length;
}

void ExtentMap::erase(ByFirst::const_iterator run) {
  free_pages_ -= run->second;
  by_length_.erase(Run{run->second, run->first});
  by_first_.erase(run->first);
}

ExtentMap::ByFirst::const_iterator ExtentMap::at_or_before(uint64_t page) const {
  const auto after = by_first_.upper_bound(page);
  return after == by_first_.begin() ? by_first_.end() : std::prev(after);
}

bool ExtentMap::is_inside(uint64_t first, uint64_t pages) const {
  return first <= page_count_ && pages <= page_count_ - first;
}

std::string ExtentMap::check_invariants() const {
  if (by_first_.size() != by_length_.size())
    return "extents: " + std::to_string(by_first_.size()) + " free runs by offset but " +
           std::to_string(by_length_.size()) + " by length";
  uint64_t total = 0;
  std::optional<uint64_t> previous_end;
  for (const auto& [first, length] : by_first_) {
    const std::string name =
        "extents: free run of " + std::to_string(length) + " at page " + std::to_string(first);
    if (length == 0 || !is_inside(first, length)) return name + " is empty or beyond the pool";
    if (previous_end && first < *previous_end) return name + " overlaps the one before it";
    if (previous_end && first == *previous_end) return name + " was not merged with its neighbour";
    if (!by_length_.contains(Run{length, first})) return name + " is missing by length";
    previous_end = first + length;
    total += length;
  }
  if (total != free_pages_)
    return "extents: " + std::to_string(free_pages_) + " pages counted free but the runs hold " +
           std::to_string(total);
  return {};
}

}  // namespace berth::pool
