#include "server/ctl/views.h"

namespace berth::ctl {

std::span<const Command> commands() {
  static const std::vector<Command> all = {
      status_command(),     usage_command(),   pools_command(),  sessions_command(),
      namespaces_command(), objects_command(), leases_command(), reservations_command(),
      jobs_command(),       events_command(),  check_command(),  fence_command(),
      evict_command(),      pin_command(),     unpin_command(),  pins_command(),
      drain_command(),      undrain_command(), policy_command(), explain_command(),
  };
  return all;
}

}  // namespace berth::ctl
