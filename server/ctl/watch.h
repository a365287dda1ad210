// The same view again and again: redrawn in place on a terminal, appended on a pipe. A server that
// goes away is said and waited for, because that is what somebody who watches wants to see.
#pragma once

#include <string>

#include "server/ctl/command_line.h"

namespace berth::ctl {

// Until the console says stop, or the server refuses what no later try can change. Returns the exit
// code.
int watch(AdminClient& client, const Invocation& invocation, Duration interval, Console& console);

// What both one look and a watch write.
std::string view_text(const View& view, Format format, const Console& console);
std::string failure_text(const std::string& path, const Failure& failure);
std::string note_text(const std::string& path, const std::string& note);

}  // namespace berth::ctl
