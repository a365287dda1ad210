#include <algorithm>

#include "tests/bench/rpc/directory_flow.h"

namespace berth::bench {
namespace {

// One engine: what it does for one request of the trace, from its probe to its last commit.
//
//   probe ─▶ usable > 0: acquire ─▶ release ─▶ something is missing: reserve ─▶ commit
//
// Several engines of a member may be at chunks of the same chain: what another writes just now is
// skipped, as it would be in an engine.
class TraceFlow final : public DirectoryFlow {
 public:
  TraceFlow(const FleetView& fleet, const FlowSettings& settings, uint64_t index)
      : DirectoryFlow(fleet, settings.api, index),
        trace_(*settings.trace),
        member_index_(index % fleet.members.size()),
        member_(*fleet.members[member_index_]) {}

  void start() override {
    trace_.next(member_index_, chain_);
    fill(probe_.request(), member_, member_.store_namespace());
    *probe_.request().mutable_digests() = chain_;
    probe_.start(member_);
  }

 private:
  uint64_t chunks() const { return chain_.size() / kDigestBytes; }

  void probed(const v1::ProbeResponse& answer) {
    if (answer.usable_chunks() == 0) return store_from(0);
    fill(acquire_.request(), member_, member_.store_namespace());
    acquire_.request().mutable_digests()->assign(chain_, 0, answer.usable_chunks() * kDigestBytes);
    acquire_.start(member_);
  }
  void acquired(const v1::AcquireResponse& answer) {
    settle();
    acquired_ = answer.chunks();
    if (acquired_ == 0) return store_from(0);
    fill(release_.request(), member_, answer.lease());
    release_.start(member_);
  }
  void released(const v1::ReleaseResponse& answer) {
    if (answer.released() != std::string(1, '\1')) return fail("a lease was not released");
    store_from(acquired_);
  }
  void store_from(uint64_t first) {
    first_missing_ = first;
    if (first == chunks()) return end_cycle(chunks());
    fill(reserve_.request(), member_, member_.store_namespace());
    reserve_.request().mutable_digests()->assign(chain_, first * kDigestBytes);
    reserve_.start(member_);
  }
  void reserved(const v1::ReserveResponse& answer) {
    settle();
    if (answer.pools_size() == 0) return end_cycle(chunks());
    fill(commit_.request(), member_, answer, static_cast<uint32_t>(first_missing_));
    commit_.request().set_ends_chain(true);
    commit_.start(member_);
  }
  void committed(const v1::CommitResponse& answer) {
    settle();
    if (!is_committed(commit_.request(), answer)) return fail("a commit did not land");
    end_cycle(chunks());
  }

  TraceSource& trace_;
  const uint64_t member_index_;
  Member& member_;
  std::string chain_;
  uint64_t acquired_ = 0;
  uint64_t first_missing_ = 0;
  DirectoryCall<ProbeMethod> probe_ = call<ProbeMethod>(this, &TraceFlow::probed);
  DirectoryCall<AcquireMethod> acquire_ = call<AcquireMethod>(this, &TraceFlow::acquired);
  DirectoryCall<ReleaseMethod> release_ = call<ReleaseMethod>(this, &TraceFlow::released);
  DirectoryCall<ReserveMethod> reserve_ = call<ReserveMethod>(this, &TraceFlow::reserved);
  DirectoryCall<CommitMethod> commit_ = call<CommitMethod>(this, &TraceFlow::committed);
};

}  // namespace

std::unique_ptr<Flow> make_trace_flow(const FleetView& fleet, const FlowSettings& settings,
                                      uint64_t index) {
  return std::make_unique<TraceFlow>(fleet, settings, index);
}

}  // namespace berth::bench
