#include "worker/replay/engine.h"

#include "common/log.h"

namespace berth::replay {

void Engine::serve(const Request& request) {
  const std::vector<Digest> digests = digest_chain(request.hash_ids);
  const std::span<const Digest> chain = digests;
  bool is_unavailable = false;
  const uint32_t usable = probe(chain, is_unavailable);
  const uint32_t hits = usable == 0 ? 0 : load(chain.first(usable), is_unavailable);
  if (hits < chain.size()) store(chain.subspan(hits), hits);

  ++counts_.requests;
  counts_.blocks += chain.size();
  counts_.prefix_hits += hits;
  counts_.load_fallbacks += usable - hits;
  counts_.misses_unavailable += is_unavailable ? 1 : 0;
}

uint32_t Engine::probe(std::span<const Digest> chain, bool& is_unavailable) {
  if (chain.empty()) return 0;
  const int64_t begun = clock_.monotonic_nanos();
  const Result<BlockCache::Probed> probed = cache_.probe(chain);
  counts_.probe_micros.push_back(static_cast<uint32_t>((clock_.monotonic_nanos() - begun) / 1000));
  if (!probed) {
    ++counts_.load_errors;
    log::error("probe_failed",
               {{"reason", probed.error().reason}, {"message", probed.error().message}});
    return 0;
  }
  is_unavailable |= probed->is_unavailable;
  return probed->usable_chunks;
}

uint32_t Engine::load(std::span<const Digest> chain, bool& is_unavailable) {
  const int64_t begun = clock_.monotonic_nanos();
  const Result<BlockCache::Loaded> loaded = cache_.load(chain);
  counts_.load_nanos += static_cast<uint64_t>(clock_.monotonic_nanos() - begun);
  if (!loaded) {
    ++counts_.load_errors;
    log::error("load_failed",
               {{"reason", loaded.error().reason}, {"message", loaded.error().message}});
    return 0;
  }
  is_unavailable |= loaded->is_unavailable;
  counts_.verify_errors += loaded->wrong_items;
  counts_.loaded_items += loaded->item_count;
  return loaded->good_chunks;
}

void Engine::store(std::span<const Digest> rest, uint32_t first) {
  const int64_t begun = clock_.monotonic_nanos();
  const Result<> stored = cache_.store(rest, first, counts_);
  counts_.store_nanos += static_cast<uint64_t>(clock_.monotonic_nanos() - begun);
  if (stored) return;
  ++counts_.store_errors;
  log::error("store_failed",
             {{"reason", stored.error().reason}, {"message", stored.error().message}});
}

}  // namespace berth::replay
