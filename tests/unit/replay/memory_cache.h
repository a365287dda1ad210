// A BlockCache that keeps bytes in a map: everything a replay needs, without a process. Tests spoil
// its bytes, cut it off, or let it lose blocks between probe and load.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "worker/replay/engine.h"

namespace berth::replay::testing {

class MemoryCache final : public BlockCache {
 public:
  explicit MemoryCache(size_t block_bytes, size_t blocks_max = SIZE_MAX)
      : block_bytes_(block_bytes), blocks_max_(blocks_max) {}

  Result<Probed> probe(std::span<const Digest> chain) override {
    if (is_down) return Probed{0, true};
    return Probed{present(chain), false};
  }

  Result<Loaded> load(std::span<const Digest> chain) override {
    Loaded loaded;
    const auto found = static_cast<uint32_t>(
        std::min<size_t>(present(chain), loses_after_probe ? lost_at : chain.size()));
    for (uint32_t i = 0; i < found; ++i) {
      if (find_wrong_byte({chain[i], 0, 0}, blocks_.at(chain[i]))) {
        ++loaded.wrong_items;
        break;
      }
      ++loaded.good_chunks;
    }
    loaded.item_count = found;
    return loaded;
  }

  Result<> store(std::span<const Digest> chunks, uint32_t, Counts& counts) override {
    for (const Digest& digest : chunks) {
      if (is_down || blocks_.size() == blocks_max_) {
        ++counts.skipped;
      } else if (auto [block, is_new] = blocks_.try_emplace(digest, block_bytes_); is_new) {
        write_content({digest, 0, 0}, block->second);
        ++counts.stored;
      } else {
        ++counts.already_present;
      }
    }
    return {};
  }

  void flip_a_bit(const Digest& digest, size_t offset) {
    blocks_.at(digest)[offset] ^= std::byte{4};
  }
  size_t size() const { return blocks_.size(); }

  bool is_down = false;
  bool loses_after_probe = false;
  uint32_t lost_at = 0;

 private:
  uint32_t present(std::span<const Digest> chain) const {
    uint32_t count = 0;
    while (count < chain.size() && blocks_.contains(chain[count])) ++count;
    return count;
  }

  size_t block_bytes_;
  size_t blocks_max_;
  std::map<Digest, std::vector<std::byte>> blocks_;
};

}  // namespace berth::replay::testing
