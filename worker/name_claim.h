// A second proof that no other worker of this name lives on this host, for the mistake that the
// life lock cannot see: the same name, configured with another runtime directory. An abstract unix
// socket is the kernel's: it ends with its holder and leaves no file. It sees one network
// namespace; beyond that the server refuses the name.
#pragma once

#include <string>

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth::worker {

// Held as long as the descriptor. `server` keeps deployments on one host apart.
// Errors: kNameInUse, kIoError.
Result<UniqueFd> claim_name(const std::string& server, const std::string& node,
                            const std::string& name);

}  // namespace berth::worker
