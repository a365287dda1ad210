// A pool of host DRAM on a sealed memfd: importers map the same descriptor and use the bytes in
// place. Memory is coherent between cores, so nothing has to be flushed to publish it.
//
// create() checks and maps, prefault() then makes every page real: only after it may the pool be
// registered, because a page that cannot be had must be an error here and not a SIGBUS in an
// engine. prefault() may run on a thread of its own while the owner keeps its heartbeat; all other
// calls follow it.
// Fixed size: the memfd is sealed against growing and shrinking, so no importer can be cut off.
// The worker's own mapping goes neither into its children (MADV_DONTFORK) nor into core dumps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/host_facts.h"
#include "common/unique_fd.h"
#include "worker/pool/pool.h"

namespace berth::pool {

// kPreferred: tried, and what could not be had becomes a warning. kRequired: an error.
enum class Wish : uint8_t { kOff, kPreferred, kRequired };

struct CpuPoolConfig {
  std::string name;             // also part of the memfd's name in /proc/<pid>/maps
  Scope scope = Scope::kHost;   // kProcess or kHost
  std::string engine;           // kProcess: see PoolTraits
  uint64_t capacity_bytes = 0;  // a multiple of page_bytes
  uint64_t page_bytes = 0;      // a power of two, 4 KiB to 1 GiB: what objects are rounded up to
  uint64_t budget_bytes = 0;    // zero: the capacity
  Wish huge_pages = Wish::kOff;
  uint64_t huge_page_bytes = uint64_t{2} << 20;  // 2 MiB or 1 GiB
  Wish lock_memory = Wish::kOff;                 // mlock
  Wish numa_bind = Wish::kOff;
  int numa_node = 0;  // with numa_bind
};

inline constexpr uint64_t kPoolPageBytesMin = uint64_t{4} << 10;
inline constexpr uint64_t kPoolPageBytesMax = uint64_t{1} << 30;
inline constexpr int kNumaNodeMax = 1023;
// About a tenth of a second of page faults: how late a heartbeat or a cancel can be.
inline constexpr uint64_t kPrefaultChunkBytes = uint64_t{32} << 20;

enum class Prefault : uint8_t { kContinue, kStop };
// Called on the thread that called prefault(): at the start, after each of its own chunks and at
// the end.
using PrefaultProgress = std::function<Prefault(uint64_t done_bytes, uint64_t total_bytes)>;

class CpuPool final : public Pool {
 public:
  // `host` bounds the size; figures that are zero are unknown and bound nothing. Nothing is touched
  // when it refuses. Errors: kInvalidConfig (names the figure and the accepted form), kIoError
  // (what the kernel said).
  static Result<std::unique_ptr<CpuPool>> create(const CpuPoolConfig& config,
                                                 const HostMemory& host);
  ~CpuPool() override;
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  // Populates every page with `thread_count` threads (at least 1, the caller's among them), then
  // measures what was got. Where preferred huge pages run out, it starts over with normal ones.
  // Errors: kCancelled (the callback said so), kIoError, kInvalidConfig (a required wish that could
  // not be had). After an Error the pool can only be destroyed.
  Result<> prefault(unsigned thread_count, const PrefaultProgress& progress);

  const PoolTraits& traits() const override { return traits_; }
  std::span<std::byte> resolve(uint64_t offset, uint64_t size_bytes) override;
  std::span<std::byte> memory() override { return {base_, traits_.map_bytes}; }
  Result<> publish(uint64_t offset, uint64_t size_bytes) override;
  int descriptor() const override { return fd_.get(); }
  // As of prefault() and hold(): measuring walks the page tables.
  PoolBacking backing() const override { return backing_; }
  void hold(std::unique_ptr<PoolRegistration> registration) override;

  // What was wished for and could not be had, one sentence each, for the log.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  explicit CpuPool(const CpuPoolConfig& config);

  Result<> map(uint64_t media_page_bytes);
  void unmap();
  Result<> map_with_wishes(Wish huge_pages);
  Result<> bind_to_node();
  Result<> lock();
  Result<> populate(unsigned thread_count, const PrefaultProgress& progress);
  Result<> measure();
  // An error where it was required, else a warning.
  Result<> settle(Wish wish, std::string_view sentence);
  // With the pool's name in front.
  std::string named(std::string_view sentence) const;
  bool is_huge() const;

  CpuPoolConfig config_;
  PoolTraits traits_;
  PoolBacking backing_;
  UniqueFd fd_;
  std::byte* base_ = nullptr;
  bool is_locked_ = false;  // mlock2 said so; locked_bytes_ is what was measured
  uint64_t locked_bytes_ = 0;
  std::unique_ptr<PoolRegistration> registration_;
  std::vector<std::string> warnings_;
  std::atomic<uint64_t> published_{0};
};

}  // namespace berth::pool
