#include "worker/pool/mapping_facts.h"

#include <numaif.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::pool {
namespace {

struct Area {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// "7f0c1a000000-7f0c1c000000 rw-s ..." opens an area; every other line of smaps is "Name: ...".
std::optional<Area> area_of(std::string_view line) {
  const size_t dash = line.find('-');
  const size_t blank = line.find(' ');
  if (dash == std::string_view::npos || blank == std::string_view::npos || blank < dash)
    return std::nullopt;
  Area area;
  const char* text = line.data();
  if (std::from_chars(text, text + dash, area.begin, 16).ptr != text + dash) return std::nullopt;
  if (std::from_chars(text + dash + 1, text + blank, area.end, 16).ptr != text + blank)
    return std::nullopt;
  return area;
}

// The number of "Rss:      2048 kB", when the line has that name.
std::optional<uint64_t> bytes_after(std::string_view line, std::string_view name) {
  if (line.substr(0, name.size()) != name) return std::nullopt;
  const size_t digit = line.find_first_of("0123456789", name.size());
  if (digit == std::string_view::npos) return std::nullopt;
  uint64_t kibibytes = 0;
  std::from_chars(line.data() + digit, line.data() + line.size(), kibibytes);
  return kibibytes * 1024;
}

}  // namespace

Result<uint64_t> measure_pinned_bytes(std::span<const std::byte> mapping) {
  std::ifstream smaps("/proc/self/smaps");
  if (!smaps) return refuse(Reason::kIoError, "/proc/self/smaps cannot be read");
  const auto begin = reinterpret_cast<uint64_t>(mapping.data());
  const uint64_t end = begin + mapping.size();
  bool is_ours = false;
  uint64_t resident = 0;
  uint64_t huge = 0;
  uint64_t pinned = 0;
  for (std::string line; std::getline(smaps, line);) {
    if (const auto area = area_of(line)) {
      is_ours = area->begin >= begin && area->end <= end;
      resident = huge = 0;
    } else if (!is_ours) {
      continue;
    } else if (const auto rss = bytes_after(line, "Rss:")) {
      resident = *rss;
    } else if (const auto bytes = bytes_after(line, "Shared_Hugetlb:")) {
      huge += *bytes;
    } else if (const auto own = bytes_after(line, "Private_Hugetlb:")) {
      huge += *own;
    } else if (line.substr(0, 8) == "VmFlags:") {
      // The last line of an area. "Locked:" above it is shared out among all who map the memory,
      // so it shrinks when engines attach; the flag does not.
      const bool is_locked = line.find(" lo") != std::string::npos;
      pinned += huge + (is_locked ? resident : 0);
    }
  }
  return pinned;
}

Result<Placement> measure_placement(std::span<const std::byte> mapping, uint64_t page_bytes,
                                    int wanted_node, size_t sample_max) {
  const uint64_t page_count = mapping.size() / page_bytes;
  const uint64_t sample = std::min<uint64_t>(page_count, sample_max);
  std::vector<void*> pages;
  pages.reserve(sample);
  for (uint64_t i = 0; i < sample; ++i) {
    const uint64_t page = i * page_count / sample;
    pages.push_back(const_cast<std::byte*>(mapping.data() + page * page_bytes));
  }
  std::vector<int> nodes(pages.size(), -1);
  // Without target nodes it moves nothing and only answers where each page is.
  if (move_pages(0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0)
    return refuse(Reason::kIoError, std::string("move_pages: ") + std::strerror(errno));
  std::map<int, uint64_t> count_by_node;
  for (const int node : nodes)
    if (node >= 0) ++count_by_node[node];
  Placement placement;
  for (const auto& [node, count] : count_by_node) {
    placement.sampled_pages += count;
    if (placement.node < 0 || count > count_by_node[placement.node]) placement.node = node;
  }
  const auto on_node = count_by_node.find(wanted_node == kAnyNode ? placement.node : wanted_node);
  placement.off_node_pages =
      placement.sampled_pages - (on_node == count_by_node.end() ? 0 : on_node->second);
  return placement;
}

}  // namespace berth::pool
