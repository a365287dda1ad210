// The memory of one join: the life lock's descriptor and a mapping for each pool of the worker, and
// of other workers of the host (read-only, with a life lock each; they come and go while the join
// lasts). Shared by every store and load that has spans in it, so the last of them unmaps it: a
// worker restart never takes memory away under a reader. The life lock is closed after the last
// pool is unmapped, because its closing is the proof that this process maps nothing any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/ids.h"
#include "common/unique_fd.h"
#include "worker/client/populate.h"

namespace berth::client {

// What the worker says about one of its pools.
struct PoolAnnouncement {
  PoolId pool;
  std::string name;
  uint64_t map_bytes = 0;  // from offset 0
  bool writable = false;
};

class PoolMapping {
 public:
  // Maps shared, not inherited by children of fork(); its page table is filled in the background.
  // The descriptor can be closed afterwards.
  // Errors: kIoError naming the pool.
  static Result<PoolMapping> map(const PoolAnnouncement& pool, int fd);
  // Of another worker: `life` is closed after the memory is unmapped, and says so.
  static Result<PoolMapping> map_imported(const PoolAnnouncement& pool, int fd, UniqueFd life);
  PoolMapping(PoolMapping&& other) noexcept;
  PoolMapping& operator=(PoolMapping&&) = delete;
  ~PoolMapping();

  PoolId pool() const { return pool_; }
  bool is_writable() const { return writable_; }
  // Empty when the run does not lie inside the mapping.
  std::span<std::byte> resolve(uint64_t offset, uint64_t size_bytes) const;

 private:
  PoolMapping(const PoolAnnouncement& pool, std::span<std::byte> memory);

  UniqueFd life_;
  PoolId pool_;
  bool writable_;
  std::span<std::byte> memory_;
  std::unique_ptr<Populating> populating_;
};

// The descriptor whose lock says that this process lives and maps the pools of a join. Held, never
// touched.
using LifeDescriptor = std::shared_ptr<const UniqueFd>;

class PoolMaps {
 public:
  // `descriptors` are the pools' in the order of `pools`. Errors: kIoError; nothing stays mapped.
  static Result<PoolMaps> map(LifeDescriptor life, const std::vector<PoolAnnouncement>& pools,
                              std::span<const UniqueFd> descriptors);

  // The same with one more, or one less: what is mapped in both is shared.
  PoolMaps with(PoolMapping mapping) const;
  PoolMaps without(PoolId pool) const;
  size_t pool_count() const { return pools_.size(); }
  bool maps(PoolId pool) const { return find(pool) != nullptr; }

  std::span<const std::byte> readable(PoolId pool, uint64_t offset, uint64_t size_bytes) const;
  std::span<std::byte> writable(PoolId pool, uint64_t offset, uint64_t size_bytes) const;

 private:
  PoolMaps() = default;
  const PoolMapping* find(PoolId pool) const;

  LifeDescriptor life_;  // before the mappings: members are destroyed from the last to the first
  std::vector<std::shared_ptr<const PoolMapping>> pools_;
};

}  // namespace berth::client
