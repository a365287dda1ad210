// What flows over the Directory service share: whose turn it is, numbered operations that are
// settled whatever becomes of them, and requests filled in for the member that sends them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/bench/core/objects.h"
#include "tests/bench/rpc/directory_flows.h"

namespace berth::bench {

class DirectoryFlow : public Flow {
 public:
  DirectoryFlow(const FleetView& fleet, Api api, uint64_t index)
      : fleet_(fleet), api_(api), turn_(index) {}

 protected:
  // Unary calls take the members in turn; on Links each flow has its own.
  Member& next_member() {
    const uint64_t turn = api_ == Api::kUnary ? turn_++ : turn_;
    return *fleet_.members[turn % fleet_.members.size()];
  }

  // Of `member`, until settle(): a failure settles it as well, so that the window does not fill up.
  uint64_t number_for(Member& member) {
    numbered_by_ = &member;
    return operation_ = member.take_operation();
  }
  void settle() {
    if (operation_ != 0) numbered_by_->answered(std::exchange(operation_, 0));
  }

  void fill(v1::ProbeRequest& request, const Member& member, uint64_t namespace_id) {
    request.set_client_session(member.client());
    request.set_namespace_id(namespace_id);
    request.mutable_digests()->clear();
  }
  void fill(v1::AcquireRequest& request, Member& member, uint64_t namespace_id) {
    request.set_client_session(member.client());
    request.set_operation(number_for(member));
    request.set_namespace_id(namespace_id);
    request.mutable_digests()->clear();
  }
  void fill(v1::ReleaseRequest& request, const Member& member, uint64_t lease) {
    request.set_client_session(member.client());
    request.clear_leases();
    request.add_leases(lease);
  }
  void fill(v1::ReserveRequest& request, Member& member, uint64_t namespace_id) {
    request.set_client_session(member.client());
    request.set_operation(number_for(member));
    request.set_namespace_id(namespace_id);
    request.mutable_digests()->clear();
    request.clear_sizes();
    request.add_sizes(kPageBytes);
  }
  // Everything that was granted, into pages of its own; item i was at `first_position` + i of its
  // chain.
  void fill(v1::CommitRequest& request, Member& member, const v1::ReserveResponse& granted,
            uint32_t first_position) {
    const auto count = static_cast<uint64_t>(granted.pools_size());
    const uint64_t first_offset = member.take_pages(count);
    request.set_client_session(member.client());
    request.set_operation(number_for(member));
    request.clear_replicas();
    request.clear_offsets();
    request.clear_positions();
    for (uint64_t i = 0; i < count; ++i) {
      request.add_replicas(granted.first_replica() + i);
      request.add_offsets(first_offset + i * kPageBytes);
    }
    const std::string& codes = granted.codes();
    for (uint32_t i = 0; i < codes.size(); ++i)
      if (codes[i] == static_cast<char>(v1::STORE_CODE_GRANTED))
        request.add_positions(first_position + i);
  }

  // One of the calls of a cycle, and what goes on with its answer.
  template <class Method, class Self>
  DirectoryCall<Method> call(Self* self,
                             void (Self::*go_on)(const typename Method::Response& answer)) {
    return DirectoryCall<Method>(
        fleet_.loop, api_, log,
        [self, go_on](const typename Method::Response& answer) { (self->*go_on)(answer); },
        [this](const Error& why) { failed_with(why); });
  }
  void fail(const std::string& what) { failed_with({Reason::kInternal, what}); }

  const FleetView fleet_;
  const Api api_;

 private:
  void failed_with(const Error& why) {
    settle();
    owner->on_failure(*this, why);
  }

  uint64_t turn_;
  Member* numbered_by_ = nullptr;
  uint64_t operation_ = 0;
};

// Whether each replica that was named is READY now.
bool is_committed(const v1::CommitRequest& request, const v1::CommitResponse& answer);

}  // namespace berth::bench
