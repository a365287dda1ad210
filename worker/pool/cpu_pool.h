// A pool of host DRAM on a sealed memfd: importers map the same descriptor and use the bytes in
// place. Cache coherence is the visibility barrier, so publish is a fence.
//
// create() checks and maps, prefault() then makes every page real: only after it may the pool be
// registered, because a page that cannot be had must be an error here, not a SIGBUS in an engine.
// prefault() may run on a thread of its own while the owner keeps its heartbeat.
// Fixed size: the memfd is sealed against growing and shrinking, so no importer can be cut off.
// The worker's own mapping is not inherited by its children (MADV_DONTFORK).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/host_facts.h"
#include "common/unique_fd.h"
#include "worker/pool/pool.h"

namespace berth::pool {

// kPreferred: tried, and what could not be had becomes a warning. kRequired: an error.
enum class Wish : uint8_t { kOff, kPreferred, kRequired };

struct CpuPoolConfig {
  std::string name;            // also the memfd's name in /proc/<pid>/maps
  Scope scope = Scope::kHost;  // kProcess or kHost
  std::string engine;
  uint64_t capacity_bytes = 0;  // a multiple of page_bytes
  uint64_t page_bytes = 0;      // a power of two, 4 KiB to 1 GiB: what one object is rounded up to
  uint64_t budget_bytes = 0;    // zero: the capacity
  Wish huge_pages = Wish::kOff;
  uint64_t huge_page_bytes = uint64_t{2} << 20;
  Wish lock_memory = Wish::kOff;  // mlock
  Wish numa_bind = Wish::kOff;
  int numa_node = 0;  // with numa_bind
};

enum class Prefault : uint8_t { kContinue, kStop };
// Called on the thread that called prefault(), at the start, after every chunk of its own and at
// the end.
using PrefaultProgress = std::function<Prefault(uint64_t done_bytes, uint64_t total_bytes)>;

class CpuPool final : public Pool {
 public:
  // `host` bounds the size. Nothing is touched when it refuses. Errors: kInvalidConfig (names the
  // figure and the accepted form; larger than the host's memory), kIoError (what the kernel said).
  static Result<std::unique_ptr<CpuPool>> create(const CpuPoolConfig& config,
                                                 const HostMemory& host);
  ~CpuPool() override;
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  // Populates every page with `threads` (at least 1, the caller's among them), then locks and
  // verifies the placement as configured. Errors: kCancelled (the callback said so), kIoError,
  // kInvalidConfig (a required wish that could not be had). Once; not thread-safe.
  Result<> prefault(unsigned threads, const PrefaultProgress& progress);

  const PoolTraits& traits() const override { return traits_; }
  std::span<std::byte> resolve(uint64_t offset, uint64_t size_bytes) override;
  std::span<std::byte> memory() override { return {base_, traits_.map_bytes}; }
  Result<> publish(uint64_t offset, uint64_t size_bytes) override;
  int descriptor() const override { return fd_.get(); }
  // As of the last prefault() or hold(): measuring walks the page tables.
  PoolBacking backing() const override { return backing_; }
  void hold(std::unique_ptr<PoolRegistration> registration) override;

  // What was wished for and could not be had, one sentence each, for the log.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  CpuPool(const CpuPoolConfig& config, uint64_t media_page_bytes);

  Result<> open_and_map();
  Result<> bind_to_node();
  Result<> lock();
  Result<> verify_placement();
  // The error of a required wish, or a warning.
  Result<> settle(Wish wish, std::string message);

  CpuPoolConfig config_;
  PoolTraits traits_;
  PoolBacking backing_;
  UniqueFd fd_;
  std::byte* base_ = nullptr;
  uint64_t locked_bytes_ = 0;
  std::unique_ptr<PoolRegistration> registration_;
  std::vector<std::string> warnings_;
};

}  // namespace berth::pool
