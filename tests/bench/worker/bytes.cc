// Each batch of a round is copied twice between the same buffers while its spans are out: once as
// the client library copies, which counts as the engine's own work, and once, alone, by std::memcpy
// as the floor. Which comes first changes from round to round, because the second one finds page
// tables and caches as the first one left them.
#include <algorithm>
#include <cstring>

#include "tests/bench/rpc/event_loop.h"
#include "tests/bench/worker/worker_bench.h"
#include "worker/client/copy_chunk.h"

namespace berth::bench {
namespace {

struct Sample {
  uint64_t calls_nanos = 0;
  uint64_t copy_nanos = 0;   // the engine's
  uint64_t floor_nanos = 0;  // the other one

  void add(const Sample& other) {
    calls_nanos += other.calls_nanos;
    copy_nanos += other.copy_nanos;
    floor_nanos += other.floor_nanos;
  }
  double of_memcpy() const {
    return static_cast<double>(floor_nanos) / static_cast<double>(calls_nanos + copy_nanos);
  }
  // Had the engine copied as the floor does.
  double of_memcpy_with_memcpy() const {
    return static_cast<double>(floor_nanos) / static_cast<double>(calls_nanos + floor_nanos);
  }
};

template <class Work>
uint64_t nanos_of(Work work) {
  const uint64_t start = now_nanos();
  work();
  return now_nanos() - start;
}

// The engine's own memory, one object beside the other.
using Buffer = std::vector<std::byte>;

// `to(i)` and `from(i)` are the memory of one object.
template <class To, class From>
void copy_twice(Sample& sample, uint64_t batch, bool floor_first, To to, From from) {
  const auto plainly = [&] {
    for (uint64_t i = 0; i < batch; ++i) std::memcpy(to(i).data(), from(i).data(), kObjectBytes);
  };
  if (floor_first) sample.floor_nanos += nanos_of(plainly);
  sample.copy_nanos += nanos_of([&] {
    for (uint64_t i = 0; i < batch; ++i) client::copy_chunk(to(i), from(i));
  });
  if (!floor_first) sample.floor_nanos += nanos_of(plainly);
}

Result<Sample> store(EngineRig& rig, std::span<const std::byte> digests, uint64_t batch,
                     const Buffer& source, bool floor_first) {
  Sample sample;
  const uint64_t size_bytes = kObjectBytes;
  client::StoreRequest request;
  request.name_space = rig.name_space();
  request.digests = digests;
  request.sizes = {&size_bytes, 1};
  Result<client::PendingStore> begun;
  sample.calls_nanos = nanos_of([&] { begun = rig.client().begin_store(request); });
  if (!begun) return tl::unexpected(begun.error());
  if (begun->granted_count() != batch)
    return refuse(
        Reason::kUnavailable,
        "a store was not granted: " + std::string(client::name_of(begun->items().back().code)));
  copy_twice(
      sample, batch, floor_first, [&](uint64_t i) { return begun->items()[i].bytes; },
      [&](uint64_t i) { return std::span(source).subspan(i * kObjectBytes, kObjectBytes); });
  Result<std::vector<client::CommitCode>> finished;
  sample.calls_nanos += nanos_of([&] { finished = rig.client().finish_store(*begun); });
  if (!finished) return tl::unexpected(finished.error());
  if (std::any_of(finished->begin(), finished->end(),
                  [](client::CommitCode code) { return code != client::CommitCode::kCommitted; }))
    return refuse(Reason::kUnavailable, "a store was not committed");
  return sample;
}

Result<Sample> load(EngineRig& rig, std::span<const std::byte> digests, uint64_t batch,
                    Buffer& target, bool floor_first) {
  Sample sample;
  Result<client::LoadHandle> handle;
  sample.calls_nanos = nanos_of([&] {
    handle = rig.client().load({rig.name_space(), digests, {}});
  });
  if (!handle) return tl::unexpected(handle.error());
  if (handle->chunks() != batch) return refuse(Reason::kUnavailable, "a load has missed");
  copy_twice(
      sample, batch, floor_first,
      [&](uint64_t i) { return std::span(target).subspan(i * kObjectBytes, kObjectBytes); },
      [&](uint64_t i) { return handle->bytes(static_cast<uint32_t>(i)); });
  const bool held = handle->valid();
  sample.calls_nanos += nanos_of([&] { rig.client().release(*handle); });
  if (!held) return refuse(Reason::kUnavailable, "a load was taken back");
  return sample;
}

// One pass over the objects in batches, stored and then loaded.
Result<> pass(EngineRig& rig, uint64_t objects, uint64_t batch, const Buffer& source,
              Buffer& target, bool floor_first, Sample& stores, Sample& loads) {
  for (uint64_t at = 0; at < objects; at += batch) {
    const std::vector<std::byte> digests = rig.next_chain(batch);
    const Result<Sample> stored = store(rig, digests, batch, source, floor_first);
    if (!stored) return tl::unexpected(stored.error());
    const Result<Sample> loaded = load(rig, digests, batch, target, floor_first);
    if (!loaded) return tl::unexpected(loaded.error());
    stores.add(*stored);
    loads.add(*loaded);
  }
  if (source != target) return refuse(Reason::kInternal, "what was loaded is not what was stored");
  return rig.evict_all();
}

BytesRow row_of(const std::string& what, uint64_t objects, uint64_t batch,
                const std::vector<Sample>& samples, double first_touch) {
  BytesRow row{what, batch, {}, {}, {}, {}, first_touch};
  std::vector<double> rates, ratios, plain_ratios, calls;
  for (const Sample& sample : samples) {
    const double seconds = static_cast<double>(sample.calls_nanos + sample.copy_nanos) / 1e9;
    const double gib = static_cast<double>(objects * kObjectBytes) / double(1 << 30);
    rates.push_back(gib / seconds);
    ratios.push_back(sample.of_memcpy());
    plain_ratios.push_back(sample.of_memcpy_with_memcpy());
    calls.push_back(static_cast<double>(sample.calls_nanos) / 1e3 /
                    static_cast<double>(objects / batch));
  }
  row.gib_per_second = spread_of(rates);
  row.of_memcpy = spread_of(ratios);
  row.of_memcpy_with_memcpy = spread_of(plain_ratios);
  row.calls_us = spread_of(calls);
  return row;
}

}  // namespace

Result<std::vector<BytesRow>> measure_bytes(EngineRig& rig, uint64_t objects,
                                            const std::vector<uint64_t>& batches, uint64_t rounds) {
  std::vector<BytesRow> rows;
  Sample first_stores, first_loads;
  const uint64_t largest = *std::max_element(batches.begin(), batches.end());
  Buffer source(objects * kObjectBytes), target(objects * kObjectBytes);
  for (size_t i = 0; i < source.size(); i += 64) source[i] = static_cast<std::byte>(i >> 12);
  target = source;  // its pages exist
  // The engine's mapping of the pool has no page yet; the copy that counts comes first.
  if (auto passed = pass(rig, objects, largest, source, target, false, first_stores, first_loads);
      !passed)
    return tl::unexpected(passed.error());
  for (const uint64_t batch : batches) {
    const uint64_t whole = objects / batch * batch;
    std::vector<Sample> stores(rounds), loads(rounds);
    for (uint64_t round = 0; round < rounds; ++round)
      if (auto passed =
              pass(rig, whole, batch, source, target, round % 2 == 0, stores[round], loads[round]);
          !passed)
        return tl::unexpected(passed.error());
    rows.push_back(row_of("store", whole, batch, stores, first_stores.of_memcpy()));
    rows.push_back(row_of("load", whole, batch, loads, first_loads.of_memcpy()));
  }
  return rows;
}

}  // namespace berth::bench
