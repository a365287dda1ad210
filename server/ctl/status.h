// The server's health in words, for every command that must tell "not ready" from "nothing there".
// A sentence that names the server, for people; scripts read `berthctl status --json`.
#pragma once

#include <string>

#include "server/ctl/admin_client.h"

namespace berth::ctl {

// "server 127.0.0.1:7420 is degraded: No space left on device".
std::string health_sentence(const AdminClient& client, const v1::GetStatusResponse& status);

}  // namespace berth::ctl
