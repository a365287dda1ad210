#include "tests/bench/rpc/directory_flows.h"

#include <algorithm>

#include "common/check.h"
#include "tests/bench/rpc/objects.h"
#include "tests/bench/rpc/schedule.h"

namespace berth::bench {
namespace {

// What all of them share: whose turn it is, and where in the population.
class DirectoryFlow : public Flow {
 public:
  DirectoryFlow(const FleetView& fleet, const FlowSettings& settings, uint64_t index)
      : fleet_(fleet), settings_(settings), turn_(index), chance_(settings.seed * 1009 + index) {}

 protected:
  Member& next_member() {
    const uint64_t turn = settings_.api == Api::kUnary ? turn_++ : turn_;
    return *fleet_.members[turn % fleet_.members.size()];
  }
  uint64_t random_first(const Member& member) {
    BERTH_CHECK(member.population() >= settings_.batch, "a member holds at least one batch");
    return next_random(chance_) % (member.population() - settings_.batch + 1);
  }
  void fail(const std::string& what) { owner->on_failure(*this, {Reason::kInternal, what}); }
  auto failed() {
    return [this](const Error& why) { owner->on_failure(*this, why); };
  }

  const FleetView fleet_;
  const FlowSettings settings_;

 private:
  uint64_t turn_;
  uint64_t chance_;
};

class ProbeFlow final : public DirectoryFlow {
 public:
  using DirectoryFlow::DirectoryFlow;

  void start() override {
    Member& member = next_member();
    v1::ProbeRequest& request = probe_.request();
    request.set_client_session(member.client());
    request.set_namespace_id(member.population_namespace());
    request.mutable_digests()->clear();
    append_digests(*request.mutable_digests(), member.number(), random_first(member),
                   settings_.batch);
    probe_.start(member);
  }
  std::vector<MessageSizes> sizes() const override { return {probe_.sizes()}; }
  void take_sizes() override { probe_.take_sizes(); }

 private:
  void probed(const v1::ProbeResponse& answer) {
    if (answer.usable_chunks() != settings_.batch) return fail("a probe missed what is there");
    owner->on_cycle(*this, settings_.batch);
  }

  DirectoryCall<ProbeMethod> probe_{fleet_.loop, settings_.api,
                                    [this](const v1::ProbeResponse& answer) { probed(answer); },
                                    failed()};
};

class AcquireFlow final : public DirectoryFlow {
 public:
  using DirectoryFlow::DirectoryFlow;

  void start() override {
    member_ = &next_member();
    v1::AcquireRequest& request = acquire_.request();
    request.set_client_session(member_->client());
    request.set_operation(member_->take_operation());
    request.set_namespace_id(member_->population_namespace());
    request.mutable_digests()->clear();
    append_digests(*request.mutable_digests(), member_->number(), random_first(*member_),
                   settings_.batch);
    acquire_.start(*member_);
  }
  std::vector<MessageSizes> sizes() const override { return {acquire_.sizes(), release_.sizes()}; }
  void take_sizes() override {
    acquire_.take_sizes();
    release_.take_sizes();
  }

 private:
  void acquired(const v1::AcquireResponse& answer) {
    member_->answered(acquire_.request().operation());
    if (answer.chunks() != settings_.batch) return fail("an acquire missed what is there");
    v1::ReleaseRequest& request = release_.request();
    request.set_client_session(member_->client());
    request.clear_leases();
    request.add_leases(answer.lease());
    release_.start(*member_);
  }
  void released(const v1::ReleaseResponse& answer) {
    if (answer.released() != std::string(1, '\1')) return fail("a lease was not released");
    owner->on_cycle(*this, settings_.batch);
  }

  Member* member_ = nullptr;
  DirectoryCall<AcquireMethod> acquire_{
      fleet_.loop, settings_.api, [this](const v1::AcquireResponse& answer) { acquired(answer); },
      failed()};
  DirectoryCall<ReleaseMethod> release_{
      fleet_.loop, settings_.api, [this](const v1::ReleaseResponse& answer) { released(answer); },
      failed()};
};

class StoreFlow final : public DirectoryFlow {
 public:
  using DirectoryFlow::DirectoryFlow;

  void start() override {
    member_ = &next_member();
    first_object_ = member_->take_objects(settings_.stores, settings_.batch);
    v1::ReserveRequest& request = reserve_.request();
    request.set_client_session(member_->client());
    request.set_operation(member_->take_operation());
    request.set_namespace_id(settings_.stores == Objects::kPopulation
                                 ? member_->population_namespace()
                                 : member_->store_namespace());
    request.mutable_digests()->clear();
    append_digests(*request.mutable_digests(), member_->number(), first_object_, settings_.batch);
    request.clear_sizes();
    request.add_sizes(kPageBytes);
    reserve_.start(*member_);
  }
  std::vector<MessageSizes> sizes() const override { return {reserve_.sizes(), commit_.sizes()}; }
  void take_sizes() override {
    reserve_.take_sizes();
    commit_.take_sizes();
  }

 private:
  void reserved(const v1::ReserveResponse& answer) {
    member_->answered(reserve_.request().operation());
    const auto granted = static_cast<uint64_t>(answer.pools_size());
    if (granted < settings_.batch && !settings_.tolerates_skips)
      return fail("a reserve granted " + std::to_string(granted) + " of " +
                  std::to_string(settings_.batch) + " items");
    if (granted == 0) return owner->on_cycle(*this, 0);
    const uint64_t first_offset = member_->take_pages(granted);
    v1::CommitRequest& request = commit_.request();
    request.set_client_session(member_->client());
    request.set_operation(member_->take_operation());
    request.clear_replicas();
    request.clear_offsets();
    request.clear_positions();
    for (uint64_t i = 0; i < granted; ++i) {
      request.add_replicas(answer.first_replica() + i);
      request.add_offsets(first_offset + i * kPageBytes);
      request.add_positions(static_cast<uint32_t>(i));
    }
    commit_.start(*member_);
  }
  void committed(const v1::CommitResponse& answer) {
    v1::CommitRequest& request = commit_.request();
    member_->answered(request.operation());
    const std::string& codes = answer.codes();
    const auto count = static_cast<uint64_t>(request.replicas_size());
    const auto done = static_cast<uint64_t>(
        std::count(codes.begin(), codes.end(), static_cast<char>(v1::COMMIT_CODE_COMMITTED)));
    if (done != count) return fail("a commit did not land");
    if (settings_.stores == Objects::kPopulation)
      member_->committed(first_object_, request.replicas(0), request.offsets(0), count);
    owner->on_cycle(*this, count);
  }

  Member* member_ = nullptr;
  uint64_t first_object_ = 0;
  DirectoryCall<ReserveMethod> reserve_{
      fleet_.loop, settings_.api, [this](const v1::ReserveResponse& answer) { reserved(answer); },
      failed()};
  DirectoryCall<CommitMethod> commit_{
      fleet_.loop, settings_.api, [this](const v1::CommitResponse& answer) { committed(answer); },
      failed()};
};

}  // namespace

std::unique_ptr<Flow> make_flow(const FleetView& fleet, const FlowSettings& settings,
                                uint64_t index) {
  switch (settings.workload) {
    case Workload::kProbe:
      return std::make_unique<ProbeFlow>(fleet, settings, index);
    case Workload::kAcquire:
      return std::make_unique<AcquireFlow>(fleet, settings, index);
    case Workload::kStore:
      return std::make_unique<StoreFlow>(fleet, settings, index);
  }
  return nullptr;
}

}  // namespace berth::bench
