#include "worker/pool_set.h"

namespace berth::worker {

Result<std::unique_ptr<PoolSet>> PoolSet::map(const WorkerConfig& config, const HostMemory& host) {
  std::unique_ptr<PoolSet> set(new PoolSet());
  for (const pool::CpuPoolConfig& wanted : config.pools) {
    auto made = pool::CpuPool::create(wanted, host);
    if (!made) return tl::unexpected(made.error());
    set->total_bytes_ += (*made)->traits().map_bytes;
    set->pools_.push_back(std::move(*made));
  }
  return set;
}

PoolSet::~PoolSet() {
  is_stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void PoolSet::start_prefault(unsigned threads) {
  thread_ = std::thread([this, threads] { prefault(threads); });
}

void PoolSet::prefault(unsigned threads) {
  for (const auto& pool : pools_) {
    const auto done = pool->prefault(threads, [this](uint64_t bytes, uint64_t) {
      done_now_ = bytes;
      return is_stopping_ ? pool::Prefault::kStop : pool::Prefault::kContinue;
    });
    if (!done) {
      outcome_ = done;
      break;
    }
    done_now_ = 0;
    done_before_ += pool->traits().map_bytes;
  }
  is_over_ = true;
}

PoolSet::Progress PoolSet::progress() const {
  return {done_before_ + done_now_, total_bytes_, is_over_};
}

Result<> PoolSet::outcome() { return outcome_; }

std::vector<AgentPool> PoolSet::agent_pools() const {
  std::vector<AgentPool> all;
  for (const auto& pool : pools_) {
    const pool::PoolTraits& traits = pool->traits();
    const pool::PoolBacking backing = pool->backing();
    AgentPool out;
    out.map_bytes = traits.map_bytes;
    out.spec.set_name(traits.name);
    out.spec.set_medium(static_cast<v1::Medium>(traits.medium));
    out.spec.set_tier(static_cast<v1::Tier>(traits.tier));
    out.spec.set_scope(static_cast<v1::Scope>(traits.scope));
    out.spec.set_engine(traits.engine);
    out.spec.set_capacity_bytes(traits.capacity_bytes);
    out.spec.set_page_bytes(traits.page_bytes);
    out.spec.set_budget_bytes(traits.budget_bytes);
    out.spec.set_backing_bytes(backing.backing_bytes);
    out.spec.set_pinned_bytes(backing.pinned_bytes);
    all.push_back(std::move(out));
  }
  return all;
}

std::vector<int> PoolSet::descriptors() const {
  std::vector<int> all;
  for (const auto& pool : pools_) all.push_back(pool->descriptor());
  return all;
}

std::vector<std::string> PoolSet::warnings() const {
  std::vector<std::string> all;
  for (const auto& pool : pools_) {
    all.insert(all.end(), pool->warnings().begin(), pool->warnings().end());
  }
  return all;
}

Result<> PoolSet::publish(std::span<const WrittenSpan> spans) {
  for (const WrittenSpan& span : spans) {
    if (auto visible = pools_[span.pool]->publish(span.offset, span.size_bytes); !visible) {
      return visible;
    }
  }
  return {};
}

}  // namespace berth::worker
