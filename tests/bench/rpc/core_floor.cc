#include "tests/bench/rpc/core_floor.h"

#include "common/check.h"
#include "server/directory/queries.h"
#include "tests/bench/core/chance.h"

namespace berth::bench {
namespace {

constexpr uint64_t kPassingFirst = uint64_t{1} << 40;

}  // namespace

CoreFloor::CoreFloor(uint64_t population)
    : member_([this](const Command& command) { return run(command); }, {}),
      population_(population) {
  member_.fill(population);
}

double CoreFloor::items_per_second(Workload workload, uint64_t batch, double seconds) {
  const uint64_t start = now_nanos();
  uint64_t spent_nanos = 0;
  uint64_t items = 0;
  do {
    if (workload == Workload::kProbe) spent_nanos += probe_nanos(batch);
    if (workload == Workload::kAcquire) spent_nanos += acquire_nanos(batch);
    if (workload == Workload::kStore) spent_nanos += store_nanos(batch);
    items += batch;
  } while (static_cast<double>(now_nanos() - start) < seconds * 1e9);
  return static_cast<double>(items) * 1e9 / static_cast<double>(spent_nanos);
}

Outcome CoreFloor::run(const Command& command) {
  const uint64_t start = now_nanos();
  Outcome outcome = rig_.run(command);
  spent_nanos_ += now_nanos() - start;
  return outcome;
}

uint64_t CoreFloor::random_first(uint64_t batch) {
  BERTH_CHECK(population_ >= batch, "the population holds at least one batch");
  return next_random(chance_) % (population_ - batch + 1);
}

uint64_t CoreFloor::probe_nanos(uint64_t batch) {
  const std::vector<Digest> digests = member_.chain(random_first(batch), batch);
  const uint64_t start = now_nanos();
  const Namespace* ns = rig_.directory().find<Namespace>(member_.namespace_id());
  const auto readers = readers_for(rig_.directory(), *ns, member_.client(), {});
  const ProbeAnswer answer = probe(rig_.directory(), *ns, digests, *readers);
  const uint64_t spent = now_nanos() - start;
  BERTH_CHECK(answer.classes.size() == batch, "the chain is there");
  return spent;
}

uint64_t CoreFloor::acquire_nanos(uint64_t batch) {
  const uint64_t before = spent_nanos_;
  const auto acquired = member_.run<Acquired>(member_.acquire(random_first(batch), batch));
  BERTH_CHECK(acquired.classes.size() == batch, "the chain is there");
  member_.run<PerItem>(member_.release(acquired));
  member_.forget_answers();
  return spent_nanos_ - before;
}

uint64_t CoreFloor::store_nanos(uint64_t batch) {
  const uint64_t before = spent_nanos_;
  const auto replicas = member_.store(kPassingFirst + passing_, batch);
  member_.forget_answers();
  const uint64_t spent = spent_nanos_ - before;
  passing_ += batch;
  member_.take_away(replicas);
  return spent;
}

}  // namespace berth::bench
