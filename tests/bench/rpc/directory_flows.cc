#include "tests/bench/rpc/directory_flows.h"

#include <algorithm>

#include "common/check.h"
#include "tests/bench/core/chance.h"
#include "tests/bench/rpc/directory_flow.h"

namespace berth::bench {
namespace {

// At random places of the population.
class PopulationFlow : public DirectoryFlow {
 public:
  PopulationFlow(const FleetView& fleet, const FlowSettings& settings, uint64_t index)
      : DirectoryFlow(fleet, settings.api, index),
        settings_(settings),
        chance_(settings.seed * 1009 + index) {}

 protected:
  void append_chain(std::string& digests, const Member& member) {
    BERTH_CHECK(member.population() >= settings_.batch, "a member holds at least one batch");
    const uint64_t first = next_random(chance_) % (member.population() - settings_.batch + 1);
    append_digests(digests, member.number(), first, settings_.batch);
  }

  const FlowSettings settings_;

 private:
  uint64_t chance_;
};

class ProbeFlow final : public PopulationFlow {
 public:
  using PopulationFlow::PopulationFlow;

  void start() override {
    Member& member = next_member();
    v1::ProbeRequest& request = probe_.request();
    fill(request, member, member.population_namespace());
    append_chain(*request.mutable_digests(), member);
    probe_.start(member);
  }

 private:
  void probed(const v1::ProbeResponse& answer) {
    if (answer.usable_chunks() != settings_.batch) return fail("a probe missed what is there");
    end_cycle(settings_.batch);
  }

  DirectoryCall<ProbeMethod> probe_ = call<ProbeMethod>(this, &ProbeFlow::probed);
};

class AcquireFlow final : public PopulationFlow {
 public:
  using PopulationFlow::PopulationFlow;

  void start() override {
    member_ = &next_member();
    v1::AcquireRequest& request = acquire_.request();
    fill(request, *member_, member_->population_namespace());
    append_chain(*request.mutable_digests(), *member_);
    acquire_.start(*member_);
  }

 private:
  void acquired(const v1::AcquireResponse& answer) {
    settle();
    if (answer.chunks() != settings_.batch) return fail("an acquire missed what is there");
    fill(release_.request(), *member_, answer.lease());
    release_.start(*member_);
  }
  void released(const v1::ReleaseResponse& answer) {
    if (answer.released() != std::string(1, '\1')) return fail("a lease was not released");
    end_cycle(settings_.batch);
  }

  Member* member_ = nullptr;
  DirectoryCall<AcquireMethod> acquire_ = call<AcquireMethod>(this, &AcquireFlow::acquired);
  DirectoryCall<ReleaseMethod> release_ = call<ReleaseMethod>(this, &AcquireFlow::released);
};

class StoreFlow final : public PopulationFlow {
 public:
  using PopulationFlow::PopulationFlow;

  void start() override {
    member_ = &next_member();
    const bool stays = settings_.stores == Objects::kPopulation;
    first_object_ = member_->take_objects(settings_.stores, settings_.batch);
    v1::ReserveRequest& request = reserve_.request();
    fill(request, *member_, stays ? member_->population_namespace() : member_->store_namespace());
    append_digests(*request.mutable_digests(), member_->number(), first_object_, settings_.batch);
    reserve_.start(*member_);
  }

 private:
  void reserved(const v1::ReserveResponse& answer) {
    settle();
    const auto granted = static_cast<uint64_t>(answer.pools_size());
    if (granted < settings_.batch && !settings_.tolerates_skips)
      return fail("a reserve granted " + std::to_string(granted) + " of " +
                  std::to_string(settings_.batch) + " items");
    if (granted == 0) return end_cycle(0);
    fill(commit_.request(), *member_, answer, 0);
    commit_.start(*member_);
  }
  void committed(const v1::CommitResponse& answer) {
    settle();
    const v1::CommitRequest& request = commit_.request();
    if (!is_committed(request, answer)) return fail("a commit did not land");
    const auto count = static_cast<uint64_t>(request.replicas_size());
    if (settings_.stores == Objects::kPopulation)
      member_->committed(first_object_, request.replicas(0), request.offsets(0), count);
    end_cycle(count);
  }

  Member* member_ = nullptr;
  uint64_t first_object_ = 0;
  DirectoryCall<ReserveMethod> reserve_ = call<ReserveMethod>(this, &StoreFlow::reserved);
  DirectoryCall<CommitMethod> commit_ = call<CommitMethod>(this, &StoreFlow::committed);
};

}  // namespace

bool is_committed(const v1::CommitRequest& request, const v1::CommitResponse& answer) {
  const std::string& codes = answer.codes();
  return codes.size() == static_cast<size_t>(request.replicas_size()) &&
         std::all_of(codes.begin(), codes.end(), [](char code) {
           return code == static_cast<char>(v1::COMMIT_CODE_COMMITTED);
         });
}

std::unique_ptr<Flow> make_flow(const FleetView& fleet, const FlowSettings& settings,
                                uint64_t index) {
  switch (settings.workload) {
    case Workload::kProbe:
      return std::make_unique<ProbeFlow>(fleet, settings, index);
    case Workload::kAcquire:
      return std::make_unique<AcquireFlow>(fleet, settings, index);
    case Workload::kStore:
      return std::make_unique<StoreFlow>(fleet, settings, index);
    case Workload::kTrace:
      return make_trace_flow(fleet, settings, index);
  }
  return nullptr;
}

}  // namespace berth::bench
