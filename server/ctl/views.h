// The commands, each described in the file of its name (reservations beside leases, undrain beside
// drain, pin and unpin beside pins). commands.cc puts them in order; a new command is one line
// here, one there, and its own file.
#pragma once

#include "server/ctl/command.h"

namespace berth::ctl {

Command status_command();
Command usage_command();
Command pools_command();
Command sessions_command();
Command namespaces_command();
Command objects_command();
Command leases_command();
Command reservations_command();
Command jobs_command();
Command events_command();
Command check_command();
Command fence_command();
Command evict_command();
Command pin_command();
Command unpin_command();
Command pins_command();
Command drain_command();
Command undrain_command();
Command policy_command();
Command explain_command();

}  // namespace berth::ctl
