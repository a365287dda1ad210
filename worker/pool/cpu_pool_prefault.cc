// Making every page of a CPU pool real, and measuring what was got.
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "worker/pool/cpu_pool.h"
#include "worker/pool/mapping_facts.h"

namespace berth::pool {
namespace {

// MADV_POPULATE_WRITE returns the error that a plain touch would turn into SIGBUS.
int populate_chunk(std::byte* begin, uint64_t size_bytes) {
  while (madvise(begin, size_bytes, MADV_POPULATE_WRITE) != 0)
    if (errno != EINTR && errno != EAGAIN) return errno;
  return 0;
}

// Chunks are taken from the front by whoever is free.
class Populating {
 public:
  Populating(std::span<std::byte> memory, uint64_t chunk_bytes)
      : memory_(memory), chunk_bytes_(chunk_bytes) {}

  // False when there is nothing left to do, or no reason to go on.
  bool take_one() {
    if (is_stopped_ || error_ != 0) return false;
    const uint64_t begin = next_.fetch_add(chunk_bytes_);
    if (begin >= memory_.size()) return false;
    const uint64_t size = std::min<uint64_t>(chunk_bytes_, memory_.size() - begin);
    if (const int error = populate_chunk(memory_.data() + begin, size); error != 0) {
      error_ = error;
      return false;
    }
    done_ += size;
    return true;
  }
  void stop() { is_stopped_ = true; }

  uint64_t done_bytes() const { return done_; }
  bool is_stopped() const { return is_stopped_; }
  int error() const { return error_; }

 private:
  const std::span<std::byte> memory_;
  const uint64_t chunk_bytes_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> is_stopped_{false};
  std::atomic<int> error_{0};  // the last one, when several threads fail
};

}  // namespace

Result<> CpuPool::prefault(unsigned thread_count, const PrefaultProgress& progress) {
  Result<> populated = populate(thread_count, progress);
  const bool may_fall_back = is_huge() && config_.huge_pages == Wish::kPreferred;
  if (!populated && populated.error().reason == Reason::kIoError && may_fall_back) {
    warnings_.push_back(populated.error().message + "; it gets normal pages instead");
    if (auto mapped = map_with_wishes(Wish::kOff); !mapped) return mapped;
    populated = populate(thread_count, progress);
  }
  if (!populated) return populated;
  return measure();
}

Result<> CpuPool::populate(unsigned thread_count, const PrefaultProgress& progress) {
  Populating work(memory(), std::max(kPrefaultChunkBytes, backing_.media_page_bytes));
  const auto report = [&] {
    if (progress(work.done_bytes(), traits_.map_bytes) == Prefault::kStop) work.stop();
  };
  report();
  std::vector<std::thread> threads;
  try {
    for (unsigned i = 1; i < thread_count; ++i)
      threads.emplace_back([&work] {
        while (work.take_one()) {
        }
      });
  } catch (const std::system_error&) {
    // No more threads to be had: those that there are do the work.
  }
  while (work.take_one()) report();
  for (std::thread& thread : threads) thread.join();
  if (work.error() != 0)
    return refuse(
        Reason::kIoError,
        named(std::string("MADV_POPULATE_WRITE: ") + std::strerror(work.error()) + " after " +
              std::to_string(work.done_bytes()) + " of " + std::to_string(traits_.map_bytes) +
              " bytes" + (is_huge() ? "; see nr_hugepages and the cgroup's hugetlb limits" : "")));
  if (work.done_bytes() < traits_.map_bytes)
    return refuse(Reason::kCancelled, named("prefaulting was stopped"));
  report();
  return {};
}

Result<> CpuPool::measure() {
  struct stat file {};
  if (fstat(descriptor(), &file) != 0)
    return refuse(Reason::kIoError, named(std::string("fstat: ") + std::strerror(errno)));
  constexpr uint64_t kStatBlockBytes = 512;
  backing_.backing_bytes =
      std::max(traits_.map_bytes, static_cast<uint64_t>(file.st_blocks) * kStatBlockBytes);

  const Result<uint64_t> pinned = measure_pinned_bytes(memory());
  locked_bytes_ = pinned.value_or(0);
  if (!pinned) warnings_.push_back(named(pinned.error().message));
  hold(std::move(registration_));
  if (is_locked_ && locked_bytes_ < traits_.map_bytes)
    if (auto settled = settle(config_.lock_memory,
                              "only " + std::to_string(locked_bytes_) + " of its " +
                                  std::to_string(traits_.map_bytes) + " bytes are locked");
        !settled)
      return settled;

  const bool is_bound = config_.numa_bind != Wish::kOff;
  const Result<Placement> placement = measure_placement(memory(), backing_.media_page_bytes,
                                                        is_bound ? config_.numa_node : kAnyNode);
  if (!placement || placement->sampled_pages == 0) {
    if (!is_bound) return {};
    return settle(config_.numa_bind, "the kernel does not say on which NUMA node it lies" +
                                         (placement ? "" : " (" + placement.error().message + ")"));
  }
  backing_.numa_node = placement->node;
  backing_.off_node_permille = placement->off_node_pages * 1000 / placement->sampled_pages;
  if (!is_bound || placement->off_node_pages == 0) return {};
  return settle(config_.numa_bind, std::to_string(placement->off_node_pages) + " of " +
                                       std::to_string(placement->sampled_pages) +
                                       " sampled pages are not on NUMA node " +
                                       std::to_string(config_.numa_node) + "; most are on node " +
                                       std::to_string(placement->node));
}

}  // namespace berth::pool
