#include "tests/integration/engine_churn.h"

#include <algorithm>
#include <sstream>

#include "tests/integration/chunk_content.h"
#include "tests/integration/waiting.h"

namespace berth::testing {
namespace {

constexpr size_t kLoadsHeld = 12;
constexpr size_t kStoresHeld = 2;
constexpr uint64_t kSizes = 3;
constexpr Duration kOutagePause = milliseconds(5);

}  // namespace

uint64_t count_wrong_bytes(const OpenLoad& open) {
  uint64_t wrong = 0;
  for (uint32_t i = 0; i < open.handle.chunks(); ++i)
    wrong += count_wrong_bytes(open.handle.bytes(i), chunk_id(open.seed, open.first + i));
  return wrong;
}

void write_granted(OpenStore& open, size_t from_percent, size_t to_percent) {
  const auto items = open.store.items();
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t size = items[i].bytes.size();
    write_chunk(items[i].bytes, chunk_id(open.seed, open.first + i), size * from_percent / 100,
                size * to_percent / 100);
  }
}

Churn::Churn(Client& client, const client::Namespace& name_space, const ChurnOptions& options)
    : client_(client), name_space_(name_space), options_(options) {}

uint64_t Churn::size_of(uint64_t chain) const {
  return options_.size_bytes * (1 + chain % kSizes) - chain % 7;
}

uint64_t Churn::below(uint64_t n) { return mix(options_.seed * 1'000'003 + ++drawn_) % n; }

std::string Churn::run() {
  const int64_t until = clock_.monotonic_millis() + options_.length.millis;
  while (clock_.monotonic_millis() < until) {
    const uint64_t what = below(100);
    if (what < 75)
      request();
    else if (what < 80)
      close_oldest_load();
    else
      close_oldest_store();
  }
  while (!loads_.empty()) close_oldest_load();
  while (!stores_.empty()) close_oldest_store();
  std::ostringstream text;
  text << "ok requests=" << counts_.requests << " chunks=" << counts_.chunks
       << " wrong=" << counts_.wrong << " lost=" << counts_.lost
       << " committed=" << counts_.committed << " skipped=" << counts_.skipped
       << " closed=" << counts_.closed << " outages=" << counts_.outages
       << " errors=" << counts_.errors << " spans_refused=" << client_.stats().spans_refused;
  return text.str();
}

// As an engine serves a prompt: reads the prefix that is there, and stores the rest.
void Churn::request() {
  ++counts_.requests;
  const uint64_t chain = std::min(below(options_.chains), below(options_.chains));
  const uint64_t length = 1 + below(options_.chunks_max);
  const auto digests = chain_digests(chain, 0, length);
  const Duration ttl{static_cast<int64_t>(below(4) == 0 ? 200 + below(2000) : 0)};
  auto handle = client_.load({.name_space = name_space_, .digests = digests}, ttl);
  if (!handle) {
    ++counts_.errors;
    return;
  }
  const uint64_t had = handle->chunks();
  if (handle->miss_reason() == client::MissReason::kUnavailable) {
    ++counts_.outages;
    let_pass(kOutagePause);  // an engine would compute now
    return;
  }
  OpenLoad open{chain, 0, std::move(*handle)};
  if (had > 0) {
    check(open);
    loads_.push_back(std::move(open));
    if (loads_.size() > kLoadsHeld || below(3) > 0) close_oldest_load();
  }
  if (had < length) store(chain, had, length - had);
}

void Churn::store(uint64_t chain, uint64_t first, uint64_t count) {
  const auto digests = chain_digests(chain, first, count);
  const uint64_t size = size_of(chain);
  std::vector<uint32_t> positions;
  for (uint64_t i = 0; i < count; ++i) positions.push_back(static_cast<uint32_t>(first + i));
  auto store = client_.begin_store({.name_space = name_space_,
                                    .digests = digests,
                                    .sizes = std::span(&size, 1),
                                    .positions = positions,
                                    .ends_chain = true});
  if (!store) {
    ++counts_.errors;
    return;
  }
  OpenStore open{chain, first, std::move(*store)};
  counts_.skipped += count - open.store.granted_count();
  if (open.store.granted_count() == 0) return;
  const uint64_t fate = below(10);
  write_granted(open, 0, fate == 0 ? 50 : 100);
  if (fate == 0) {
    client_.abort_store(open.store);
  } else if (fate < 3) {
    stores_.push_back(std::move(open));
    if (stores_.size() > kStoresHeld) close_oldest_store();
  } else {
    finish(open);
  }
}

void Churn::finish(OpenStore& open) {
  const auto codes = client_.finish_store(open.store);
  if (!codes) {
    ++counts_.errors;
    return;
  }
  for (const client::CommitCode code : *codes)
    ++(code == client::CommitCode::kCommitted ? counts_.committed : counts_.closed);
}

// Everything is read, and only then is it asked whether the protection held.
void Churn::check(const OpenLoad& open) {
  uint64_t wrong = count_wrong_bytes(open);
  for (uint32_t i = 0; i < open.handle.chunks(); ++i)
    wrong += open.handle.bytes(i).size() != size_of(open.seed);
  if (!open.handle.valid()) {
    ++counts_.lost;
    return;
  }
  counts_.chunks += open.handle.chunks();
  counts_.wrong += wrong;
}

void Churn::close_oldest_load() {
  if (loads_.empty()) return;
  OpenLoad open = std::move(loads_.front());
  loads_.pop_front();
  check(open);
  client_.release(open.handle);
}

void Churn::close_oldest_store() {
  if (stores_.empty()) return;
  OpenStore open = std::move(stores_.front());
  stores_.pop_front();
  finish(open);
}

}  // namespace berth::testing
