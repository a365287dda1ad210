// The memory of one simulated pool: each page holds a content id instead of bytes, and knows who
// may touch it. Overlapping use and stale reads are found in the act.
//
// Whoever maps a pool shares it, so it lives on when its worker dies, as a memfd does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/text.h"
#include "tests/sim/judge.h"

namespace berth::sim {

// What page `index` of an object holds when its bytes are right.
inline uint64_t content_of(uint64_t object_hash, uint64_t index) {
  return mix(object_hash, index + 1) | 1;
}

class Pages {
 public:
  Pages(Judge& judge, uint64_t page_count) : judge_(judge), pages_(page_count) {}

  uint64_t count() const { return pages_.size(); }

  // A writer is given these pages. Nobody else may be at them.
  void take_for_writing(uint64_t first, uint64_t count, ReplicaId replica) {
    if (!is_inside(first, count, replica)) return;
    for (uint64_t i = first; i < first + count; ++i) {
      Page& page = pages_[i];
      judge_.expect(page.readers == 0, [&] {
        return "pages were given out for writing under a reader: page " + std::to_string(i) +
               ", replica " + to_text(replica);
      });
      judge_.expect(!page.writer.valid(), [&] {
        return "two writers were given page " + std::to_string(i) + ": replicas " +
               to_text(page.writer) + " and " + to_text(replica);
      });
      page.writer = replica;
    }
  }
  void write(uint64_t at, uint64_t content) { pages_[at].content = content; }
  void end_writing(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) pages_[i].writer = {};
  }

  void take_for_reading(uint64_t first, uint64_t count, ReplicaId replica) {
    if (!is_inside(first, count, replica)) return;
    for (uint64_t i = first; i < first + count; ++i) {
      judge_.expect(!pages_[i].writer.valid(), [&] {
        return "a reader of replica " + to_text(replica) + " was given page " + std::to_string(i) +
               ", which replica " + to_text(pages_[i].writer) + " is being written to";
      });
      ++pages_[i].readers;
    }
  }
  uint64_t read(uint64_t at) const { return pages_[at].content; }
  void end_reading(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) --pages_[i].readers;
  }

 private:
  struct Page {
    uint64_t content = 0;
    uint32_t readers = 0;
    ReplicaId writer;
  };
  bool is_inside(uint64_t first, uint64_t count, ReplicaId replica) {
    const bool inside = count > 0 && first + count <= pages_.size();
    judge_.expect(inside,
                  [&] { return "a span lies outside its pool: replica " + to_text(replica); });
    return inside;
  }

  Judge& judge_;
  std::vector<Page> pages_;
};

}  // namespace berth::sim
