#include "worker/pool/cpu_pool.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/check.h"
#include "common/names.h"
#include "common/text.h"
#include "common/units.h"

namespace berth::pool {
namespace {

std::string pool_name(const CpuPoolConfig& config) { return "pool " + quote(config.name); }

std::string failed(std::string_view call, int error) {
  return std::string(call) + ": " + std::strerror(error);
}

Result<> refuse_config(const CpuPoolConfig& config, const std::string& sentence) {
  return refuse(Reason::kInvalidConfig, pool_name(config) + ": " + sentence);
}

Result<> check_figures(const CpuPoolConfig& config) {
  if (auto valid = validate_name("pool name", config.name); !valid) return valid;
  if (config.scope != Scope::kProcess && config.scope != Scope::kHost)
    return refuse_config(config, "a CPU pool has scope process or host");
  if (!std::has_single_bit(config.page_bytes) || config.page_bytes < kPoolPageBytesMin ||
      config.page_bytes > kPoolPageBytesMax)
    return refuse_config(config, "page size " + std::to_string(config.page_bytes) +
                                     " is not a power of two from 4KiB to 1GiB");
  if (config.capacity_bytes == 0 || config.capacity_bytes % config.page_bytes != 0)
    return refuse_config(config, "size " + std::to_string(config.capacity_bytes) +
                                     " is not a multiple of the page size, " +
                                     exact_size(config.page_bytes));
  if (config.budget_bytes > config.capacity_bytes)
    return refuse_config(config, "budget " + exact_size(config.budget_bytes) +
                                     " is above the size, " + exact_size(config.capacity_bytes));
  if (config.huge_pages != Wish::kOff && config.huge_page_bytes != uint64_t{2} << 20 &&
      config.huge_page_bytes != uint64_t{1} << 30)
    return refuse_config(config, "huge page size " + std::to_string(config.huge_page_bytes) +
                                     " is neither 2MiB nor 1GiB");
  if (config.numa_bind != Wish::kOff && (config.numa_node < 0 || config.numa_node > kNumaNodeMax))
    return refuse_config(config, "NUMA node " + std::to_string(config.numa_node) +
                                     " is not a number from 0 to " + std::to_string(kNumaNodeMax));
  return {};
}

Result<> check_fits(const CpuPoolConfig& config, const HostMemory& host) {
  const uint64_t usable = host.usable_bytes();
  if (usable > 0 && config.capacity_bytes > usable)
    return refuse_config(config, "size " + format_size(config.capacity_bytes) +
                                     " is larger than the " + format_size(usable) +
                                     " of memory that this process may ever have (the host's "
                                     "total, or its cgroup's limit); choose a smaller size");
  // Huge pages were set aside before; they are not part of what is available.
  if (config.huge_pages == Wish::kRequired) return {};
  if (host.available_bytes > 0 && config.capacity_bytes > host.available_bytes)
    return refuse_config(config, "size " + format_size(config.capacity_bytes) +
                                     " is larger than the " + format_size(host.available_bytes) +
                                     " that are available now (MemAvailable in /proc/meminfo); "
                                     "free memory or choose a smaller size");
  return {};
}

}  // namespace

Result<std::unique_ptr<CpuPool>> CpuPool::create(const CpuPoolConfig& config,
                                                 const HostMemory& host) {
  if (auto valid = check_figures(config); !valid) return tl::unexpected(valid.error());
  if (auto fits = check_fits(config, host); !fits) return tl::unexpected(fits.error());
  std::unique_ptr<CpuPool> pool(new CpuPool(config));
  if (auto mapped = pool->map_with_wishes(config.huge_pages); !mapped)
    return tl::unexpected(mapped.error());
  return pool;
}

CpuPool::CpuPool(const CpuPoolConfig& config)
    : config_(config),
      traits_{
          .name = config.name,
          .medium = Medium::kCpu,
          .tier = Tier::kL1,
          .scope = config.scope,
          .engine = config.engine,
          .capacity_bytes = config.capacity_bytes,
          .page_bytes = config.page_bytes,
          .budget_bytes = config.budget_bytes == 0 ? config.capacity_bytes : config.budget_bytes,
          .map_bytes = 0} {}

CpuPool::~CpuPool() {
  registration_.reset();  // before the memory that it names
  unmap();
}

// ---- Mapping --------------------------------------------------------------------------------

Result<> CpuPool::map_with_wishes(Wish huge_pages) {
  const auto normal_page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Result<> mapped;
  if (huge_pages != Wish::kOff) mapped = map(config_.huge_page_bytes);
  if (!mapped) {
    const std::string sentence = exact_size(config_.huge_page_bytes) + " pages could not be had (" +
                                 mapped.error().message + "); see /proc/sys/vm/nr_hugepages";
    if (auto settled = settle(huge_pages, sentence); !settled) return settled;
  }
  if (huge_pages == Wish::kOff || !mapped) mapped = map(normal_page_bytes);
  if (!mapped) return refuse(Reason::kIoError, named(mapped.error().message));
  if (auto bound = bind_to_node(); !bound) return bound;
  return lock();
}

Result<> CpuPool::map(uint64_t media_page_bytes) {
  unmap();
  backing_ = PoolBacking{.media_page_bytes = media_page_bytes};
  const uint64_t map_bytes =
      (config_.capacity_bytes + media_page_bytes - 1) / media_page_bytes * media_page_bytes;
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  if (is_huge())
    flags |=
        MFD_HUGETLB | (static_cast<unsigned>(std::countr_zero(media_page_bytes)) << MFD_HUGE_SHIFT);
  fd_.reset(memfd_create(("berth-" + config_.name).c_str(), flags));
  if (!fd_) return refuse(Reason::kIoError, failed("memfd_create", errno));
  if (ftruncate(fd_.get(), static_cast<off_t>(map_bytes)) != 0)
    return refuse(Reason::kIoError, failed("ftruncate", errno));
  if (fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return refuse(Reason::kIoError, failed("F_ADD_SEALS", errno));
  void* mapped = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (mapped == MAP_FAILED) return refuse(Reason::kIoError, failed("mmap", errno));
  base_ = static_cast<std::byte*>(mapped);
  traits_.map_bytes = map_bytes;
  backing_.backing_bytes = map_bytes;
  for (const int advice : {MADV_DONTFORK, MADV_DONTDUMP})
    if (madvise(base_, map_bytes, advice) != 0)
      return refuse(Reason::kIoError, failed("madvise", errno));
  return {};
}

void CpuPool::unmap() {
  if (base_) munmap(base_, traits_.map_bytes);
  base_ = nullptr;
  is_locked_ = false;
  fd_.reset();
}

Result<> CpuPool::bind_to_node() {
  if (config_.numa_bind == Wish::kOff) return {};
  constexpr size_t kBits = sizeof(unsigned long) * 8;
  std::array<unsigned long, (kNumaNodeMax + 1) / kBits> mask{};
  const auto node = static_cast<size_t>(config_.numa_node);
  mask[node / kBits] |= 1ul << (node % kBits);
  const int mode = config_.numa_bind == Wish::kRequired ? MPOL_BIND : MPOL_PREFERRED;
  if (mbind(base_, traits_.map_bytes, mode, mask.data(), kNumaNodeMax + 2, 0) == 0) return {};
  return settle(config_.numa_bind, "the kernel refused to place it on NUMA node " +
                                       std::to_string(config_.numa_node) + " (" +
                                       failed("mbind", errno) + ")");
}

// Before the pages exist: a limit that is too low shows now, and not after minutes of prefaulting.
Result<> CpuPool::lock() {
  if (config_.lock_memory == Wish::kOff) return {};
  is_locked_ = mlock2(base_, traits_.map_bytes, MLOCK_ONFAULT) == 0;
  if (is_locked_) return {};
  const int error = errno;
  const std::optional<uint64_t> limit = locked_memory_limit_bytes();
  return settle(config_.lock_memory,
                "its " + std::to_string(traits_.map_bytes) + " bytes could not be locked (" +
                    failed("mlock2", error) + "); RLIMIT_MEMLOCK is " +
                    (limit ? std::to_string(*limit) + " bytes" : "unlimited") +
                    " for this process. Set LimitMEMLOCK=infinity in the [Service] section of the "
                    "unit, raise \"ulimit -l\", or do not lock this pool");
}

Result<> CpuPool::settle(Wish wish, std::string_view sentence) {
  if (wish == Wish::kRequired) return refuse(Reason::kInvalidConfig, named(sentence));
  warnings_.push_back(named(sentence));
  return {};
}

std::string CpuPool::named(std::string_view sentence) const {
  return pool_name(config_) + ": " + std::string(sentence);
}

bool CpuPool::is_huge() const {
  return config_.huge_pages != Wish::kOff && backing_.media_page_bytes == config_.huge_page_bytes;
}

// ---- Use ------------------------------------------------------------------------------------

std::span<std::byte> CpuPool::resolve(uint64_t offset, uint64_t size_bytes) {
  BERTH_CHECK(offset <= traits_.capacity_bytes && size_bytes <= traits_.capacity_bytes - offset,
              "a span lies within its pool");
  return {base_ + offset, size_bytes};
}

Result<> CpuPool::publish(uint64_t offset, uint64_t size_bytes) {
  resolve(offset, size_bytes);
  // The writer's message that it has finished came through the kernel, which orders its stores
  // before this. A full barrier orders this process's own copies.
  published_.fetch_add(1, std::memory_order_seq_cst);
  return {};
}

void CpuPool::hold(std::unique_ptr<PoolRegistration> registration) {
  registration_ = std::move(registration);
  // The same pages may be locked and registered: they are pinned once.
  const uint64_t registered = registration_ ? registration_->pinned_bytes() : 0;
  backing_.pinned_bytes = std::max(locked_bytes_, registered);
}

}  // namespace berth::pool
