#include <algorithm>

#include "common/rpc_status.h"
#include "tests/bench/rpc/member.h"

namespace berth::bench {

uint64_t Member::add_asker(LinkAnswer& asker) {
  const auto free = std::find(askers_.begin(), askers_.end(), nullptr);
  const auto slot = static_cast<uint64_t>(free - askers_.begin()) + 1;
  if (free != askers_.end()) {
    *free = &asker;
    return slot;
  }
  askers_.push_back(&asker);
  is_asking_.push_back(false);
  return slot;
}

void Member::remove_asker(uint64_t slot) {
  askers_[slot - 1] = nullptr;
  is_asking_[slot - 1] = false;
}

void Member::ask(v1::LinkRequest& request, uint64_t slot) {
  if (!is_linked_)
    return askers_[slot - 1]->on_link_ended({Reason::kUnavailable, "there is no Link"});
  request.set_correlation(slot);
  is_asking_[slot - 1] = true;
  link_.write(request);
}

void Member::beat() {
  if (is_linked_) tell_low_water();
}

void Member::tell_low_water() {
  auto message = std::make_unique<v1::LinkRequest>();
  v1::Heartbeat& heartbeat = *message->mutable_heartbeat();
  heartbeat.set_sequence(++heartbeats_);
  if (client_ != 0) {
    v1::LowWater& mark = *heartbeat.add_low_water();
    mark.set_session(client_);
    mark.set_operation(operations_.low());
    low_water_told_ = operations_.low();
  }
  link_.write(std::move(message));
}

void Member::on_message(const v1::LinkResponse& message) {
  if (const uint64_t slot = message.correlation(); slot > 0 && slot <= askers_.size()) {
    if (is_asking_[slot - 1]) {
      is_asking_[slot - 1] = false;
      askers_[slot - 1]->on_answer(message);
    }
    return;
  }
  if (message.has_welcome()) {
    is_linked_ = true;
    awaits_welcome_ = false;
    welcomed_.set_value({});
  } else if (message.has_reclaim()) {
    // No span is out, ever: the owner frees at once.
    auto ack = std::make_unique<v1::LinkRequest>();
    *ack->mutable_reclaim_ack()->mutable_replicas() = message.reclaim().replicas();
    link_.write(std::move(ack));
  }
}

void Member::on_ended(const grpc::Status& status) {
  is_linked_ = false;
  link_ended_->set_value();
  link_ended_.reset();
  const Error why =
      status.ok() ? Error{Reason::kUnavailable, "the Link ended"} : error_from_status(status);
  if (awaits_welcome_) {
    awaits_welcome_ = false;
    welcomed_.set_value(refuse(why.reason, "open the Link: " + why.message));
  }
  for (size_t i = 0; i < askers_.size(); ++i)
    if (is_asking_[i]) {
      is_asking_[i] = false;
      askers_[i]->on_link_ended(why);
    }
}

}  // namespace berth::bench
