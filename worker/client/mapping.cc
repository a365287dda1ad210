#include "worker/client/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "common/check.h"
#include "common/os_error.h"

namespace berth::client {

Result<PoolMapping> PoolMapping::map(const PoolAnnouncement& pool, int fd) {
  const int access = pool.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = ::mmap(nullptr, pool.map_bytes, access, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return refuse_os("map pool " + pool.name, errno);
  PoolMapping mapping(pool, {static_cast<std::byte*>(address), pool.map_bytes});
  if (::madvise(address, pool.map_bytes, MADV_DONTFORK) != 0)
    return refuse_os("keep pool " + pool.name + " out of child processes", errno);
  mapping.populating_ = std::make_unique<Populating>(mapping.memory_);
  return mapping;
}

Result<PoolMapping> PoolMapping::map_imported(const PoolAnnouncement& pool, int fd, UniqueFd life) {
  BERTH_CHECK(!pool.writable, "another worker's pool is read, never written");
  Result<PoolMapping> mapping = map(pool, fd);
  if (mapping) mapping->life_ = std::move(life);
  return mapping;
}

PoolMapping::PoolMapping(const PoolAnnouncement& pool, std::span<std::byte> memory)
    : pool_(pool.pool), writable_(pool.writable), memory_(memory) {}

PoolMapping::PoolMapping(PoolMapping&& other) noexcept
    : life_(std::move(other.life_)),
      pool_(other.pool_),
      writable_(other.writable_),
      memory_(std::exchange(other.memory_, {})),
      populating_(std::move(other.populating_)) {}

PoolMapping::~PoolMapping() {
  populating_.reset();
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

std::span<std::byte> PoolMapping::resolve(uint64_t offset, uint64_t size_bytes) const {
  if (offset > memory_.size() || size_bytes > memory_.size() - offset) return {};
  return memory_.subspan(offset, size_bytes);
}

Result<PoolMaps> PoolMaps::map(LifeDescriptor life, const std::vector<PoolAnnouncement>& pools,
                               std::span<const UniqueFd> descriptors) {
  BERTH_CHECK(pools.size() == descriptors.size(), "one descriptor for each pool");
  PoolMaps maps;
  maps.life_ = std::move(life);
  maps.pools_.reserve(pools.size());
  for (size_t i = 0; i < pools.size(); ++i) {
    Result<PoolMapping> mapping = PoolMapping::map(pools[i], descriptors[i].get());
    if (!mapping) return tl::unexpected(mapping.error());
    maps.pools_.push_back(std::make_shared<const PoolMapping>(std::move(*mapping)));
  }
  return maps;
}

PoolMaps PoolMaps::with(PoolMapping mapping) const {
  PoolMaps maps = without(mapping.pool());
  maps.pools_.push_back(std::make_shared<const PoolMapping>(std::move(mapping)));
  return maps;
}

PoolMaps PoolMaps::without(PoolId pool) const {
  PoolMaps maps;
  maps.life_ = life_;
  for (const auto& mapping : pools_)
    if (mapping->pool() != pool) maps.pools_.push_back(mapping);
  return maps;
}

const PoolMapping* PoolMaps::find(PoolId pool) const {
  for (const auto& mapping : pools_)
    if (mapping->pool() == pool) return mapping.get();
  return nullptr;
}

std::span<const std::byte> PoolMaps::readable(PoolId pool, uint64_t offset,
                                              uint64_t size_bytes) const {
  const PoolMapping* mapping = find(pool);
  return mapping ? mapping->resolve(offset, size_bytes) : std::span<std::byte>();
}

std::span<std::byte> PoolMaps::writable(PoolId pool, uint64_t offset, uint64_t size_bytes) const {
  const PoolMapping* mapping = find(pool);
  return mapping && mapping->is_writable() ? mapping->resolve(offset, size_bytes)
                                           : std::span<std::byte>();
}

}  // namespace berth::client
