// One engine thread, one call at a time: load, a look at every span, release; and in the same round
// echoes of the sizes of both calls, from the same thread, by the same blocking call.
#include <algorithm>

#include "berth/v1/worker.pb.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"
#include "tests/bench/rpc/event_loop.h"
#include "tests/bench/rpc/histogram.h"
#include "tests/bench/worker/worker_bench.h"

namespace berth::bench {
namespace {

struct Sizes {
  uint64_t request = 0;
  uint64_t answer = 0;
};

// Ids and offsets as wide as a long-lived fleet has them.
v1::ClientCaller typical_caller() {
  v1::ClientCaller caller;
  caller.set_client_session(uint64_t{1} << 40);
  caller.set_token(std::string(16, 't'));
  caller.set_worker_incarnation(3);
  caller.set_operation_low_water(100'000);
  return caller;
}

Sizes load_sizes(uint64_t batch, uint64_t digest_bytes) {
  v1::LoadRequest request;
  *request.mutable_caller() = typical_caller();
  request.set_operation(100'000);
  request.set_namespace_id(uint64_t{1} << 40);
  request.set_digests(std::string(batch * digest_bytes, 'd'));
  v1::LoadResponse response;
  response.set_handle(100'000);
  response.set_state(v1::LOAD_STATE_COMPLETE);
  response.set_chunks(static_cast<uint32_t>(batch));
  response.set_classes(std::string(batch, '\2'));
  for (uint64_t i = 0; i < batch; ++i) {
    response.add_replicas((uint64_t{1} << 40) + i);
    response.add_pools(uint64_t{1} << 40);
    response.add_offsets(i * kObjectBytes);
    response.add_sizes(kObjectBytes);
  }
  return {request.ByteSizeLong(), response.ByteSizeLong()};
}

Sizes release_sizes() {
  v1::WorkerReleaseRequest request;
  *request.mutable_caller() = typical_caller();
  request.add_handles(100'000);
  v1::WorkerReleaseResponse response;
  response.set_released("\1");
  return {request.ByteSizeLong(), response.ByteSizeLong()};
}

Result<> echo_once(Echo::Stub& stub, const EchoRequest& request) {
  grpc::ClientContext context;
  set_deadline(context, seconds(30));
  EchoResponse response;
  const grpc::Status status = stub.Call(&context, request, &response);
  if (!status.ok()) return tl::unexpected(error_from_status(status));
  return {};
}

EchoRequest echo_of(const Sizes& sizes) {
  EchoRequest request;
  request.set_payload(std::string(sizes.request, 'x'));
  request.set_payload_bytes(static_cast<uint32_t>(sizes.answer));
  return request;
}

struct Round {
  Histogram load, release, cycle, echo, two_echoes;
};

Result<> run_berth(EngineRig& rig, std::span<const std::byte> chain, uint64_t batch, double seconds,
                   Round& round) {
  const uint64_t start = now_nanos();
  for (uint64_t end = start; static_cast<double>(end - start) < seconds * 1e9;) {
    const uint64_t asked = now_nanos();
    auto handle = rig.client().load({rig.name_space(), chain, {}});
    if (!handle) return tl::unexpected(handle.error());
    if (handle->chunks() != batch) return refuse(Reason::kUnavailable, "a load has missed");
    for (uint32_t i = 0; i < batch; ++i)
      if (handle->bytes(i).size() != kObjectBytes)
        return refuse(Reason::kInternal, "a span has another size than its object");
    const uint64_t loaded = now_nanos();
    rig.client().release(*handle);
    end = now_nanos();
    round.load.record(loaded - asked);
    round.release.record(end - loaded);
    round.cycle.record(end - asked);
  }
  return {};
}

Result<> run_echo(EngineRig& rig, const EchoRequest& first, const EchoRequest& second,
                  double seconds, Round& round) {
  const uint64_t start = now_nanos();
  for (uint64_t end = start; static_cast<double>(end - start) < seconds * 1e9;) {
    const uint64_t asked = now_nanos();
    if (const Result<> echoed = echo_once(rig.echo(), first); !echoed) return echoed;
    const uint64_t between = now_nanos();
    if (const Result<> echoed = echo_once(rig.echo(), second); !echoed) return echoed;
    end = now_nanos();
    round.echo.record(between - asked);
    round.two_echoes.record(end - asked);
  }
  return {};
}

Spread over(const std::vector<Round>& rounds, Histogram Round::*of, double percent) {
  std::vector<double> values;
  for (const Round& round : rounds)
    values.push_back(static_cast<double>((round.*of).percentile(percent)) / 1e3);
  return spread_of(values);
}

Spread ratio(const std::vector<Round>& rounds, Histogram Round::*of, Histogram Round::*by) {
  std::vector<double> figures, floors;
  for (const Round& round : rounds) {
    figures.push_back(static_cast<double>((round.*of).percentile(50)));
    floors.push_back(static_cast<double>((round.*by).percentile(50)));
  }
  return ratios_of(figures, floors);
}

Result<> store_chain(EngineRig& rig, std::span<const std::byte> chain) {
  const uint64_t size_bytes = kObjectBytes;
  client::StoreRequest request;
  request.name_space = rig.name_space();
  request.digests = chain;
  request.sizes = {&size_bytes, 1};
  auto begun = rig.client().begin_store(request);
  if (!begun) return tl::unexpected(begun.error());
  const auto finished = rig.client().finish_store(*begun);
  if (!finished) return tl::unexpected(finished.error());
  return {};
}

}  // namespace

Result<std::vector<LatencyRow>> measure_latency(EngineRig& rig,
                                                const std::vector<uint64_t>& batches,
                                                uint64_t rounds, double seconds) {
  std::vector<LatencyRow> rows;
  for (const uint64_t batch : batches) {
    const std::vector<std::byte> chain = rig.next_chain(batch);
    if (const Result<> stored = store_chain(rig, chain); !stored)
      return tl::unexpected(stored.error());
    const EchoRequest first = echo_of(load_sizes(batch, rig.name_space().digest_bytes));
    const EchoRequest second = echo_of(release_sizes());
    std::vector<Round> all(rounds);
    Round warming;
    for (Round* round = &warming; round;
         round = round == &warming ? all.data() : (round == &all.back() ? nullptr : round + 1)) {
      if (const Result<> ran = run_echo(rig, first, second, seconds, *round); !ran)
        return tl::unexpected(ran.error());
      if (const Result<> ran = run_berth(rig, chain, batch, seconds, *round); !ran)
        return tl::unexpected(ran.error());
    }
    rows.push_back({batch, over(all, &Round::load, 50), over(all, &Round::load, 99),
                    ratio(all, &Round::load, &Round::echo), over(all, &Round::release, 50),
                    ratio(all, &Round::cycle, &Round::two_echoes), over(all, &Round::echo, 50)});
    if (const Result<> evicted = rig.evict_all(); !evicted) return tl::unexpected(evicted.error());
  }
  return rows;
}

}  // namespace berth::bench
