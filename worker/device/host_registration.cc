#include "worker/device/host_registration.h"

#include <algorithm>

#include "common/check.h"
#include "common/units.h"

namespace berth::device {

HostRegistrations::HostRegistrations(HostRegisterCalls& calls, size_t chunk_bytes)
    : calls_(calls), chunk_bytes_(chunk_bytes) {
  BERTH_CHECK(chunk_bytes > 0, "a chunk of no bytes never covers a range");
}

HostRegistrations::~HostRegistrations() {
  int code = 0;
  for (auto& [start, range] : ranges_) unregister_chunks(range, code);
}

Result<> HostRegistrations::add(std::span<std::byte> memory) {
  if (memory.empty()) return refuse(Reason::kInvalidArgument, "host memory of 0 bytes");
  if (overlaps(memory))
    return refuse(Reason::kInvalidArgument, "host memory overlaps a range that is registered");
  if (ranges_.size() >= kRangeCountMax)
    return refuse(
        Reason::kLimitReached,
        "a device registers at most " + std::to_string(kRangeCountMax) + " ranges of host memory");

  Range range{.size = memory.size(), .chunks = {}};
  for (size_t offset = 0; offset < memory.size(); offset += chunk_bytes_) {
    const auto chunk = memory.subspan(offset, std::min(chunk_bytes_, memory.size() - offset));
    const int code = calls_.register_chunk(chunk);
    if (code == 0) {
      range.chunks.emplace(chunk.data(), chunk.size());
      registered_bytes_ += chunk.size();
      continue;
    }
    calls_.clear_latched_error();
    std::string message = "pinning host memory failed after " + format_size(offset) + " of " +
                          format_size(memory.size()) + ": " + calls_.describe(code);
    int rollback_code = 0;
    if (const size_t left = unregister_chunks(range, rollback_code); left > 0) {
      message += "; " + std::to_string(left) +
                 " earlier chunks could not be unpinned either: " + calls_.describe(rollback_code);
      ranges_.emplace(memory.data(), std::move(range));
    }
    return refuse(Reason::kIoError,
                  message +
                      "; check the locked-memory limit (LimitMEMLOCK) and free host memory, "
                      "or make the pool smaller");
  }
  ranges_.emplace(memory.data(), std::move(range));
  return {};
}

Result<> HostRegistrations::remove(std::span<std::byte> memory) {
  const auto found = ranges_.find(memory.data());
  if (found == ranges_.end() || found->second.size != memory.size())
    return refuse(Reason::kInvalidArgument,
                  "host memory was not registered as this range; name exactly what was registered");
  int code = 0;
  if (const size_t left = unregister_chunks(found->second, code); left > 0)
    return refuse(Reason::kIoError, std::to_string(left) + " chunks of host memory stay pinned: " +
                                        calls_.describe(code));
  ranges_.erase(found);
  return {};
}

std::vector<std::span<const std::byte>> HostRegistrations::pieces_of(
    std::span<const std::byte> memory) const {
  std::vector<std::span<const std::byte>> pieces;
  const auto cut_at = [&](const std::byte* boundary) {
    if (boundary <= memory.data() || boundary >= memory.data() + memory.size()) return;
    const auto size = static_cast<size_t>(boundary - memory.data());
    pieces.push_back(memory.first(size));
    memory = memory.subspan(size);
  };
  for (const auto& [start, range] : ranges_) {
    for (const auto& [chunk, size] : range.chunks) {
      cut_at(chunk);
      cut_at(chunk + size);
    }
  }
  if (!memory.empty()) pieces.push_back(memory);
  return pieces;
}

bool HostRegistrations::overlaps(std::span<std::byte> memory) const {
  auto next = ranges_.lower_bound(memory.data());
  if (next != ranges_.end() && next->first < memory.data() + memory.size()) return true;
  if (next == ranges_.begin()) return false;
  --next;
  return next->first + next->second.size > memory.data();
}

// Goes on past a failure, so that one stuck chunk does not keep the others pinned. Returns how many
// stay.
size_t HostRegistrations::unregister_chunks(Range& range, int& first_code) {
  for (auto chunk = range.chunks.begin(); chunk != range.chunks.end();) {
    const int code = calls_.unregister_chunk(chunk->first);
    if (code == 0) {
      registered_bytes_ -= chunk->second;
      chunk = range.chunks.erase(chunk);
      continue;
    }
    calls_.clear_latched_error();
    if (first_code == 0) first_code = code;
    ++chunk;
  }
  return range.chunks.size();
}

}  // namespace berth::device
