// How much memory this process holds, as the kernel counts it: for the status and the metrics,
// which must say the same.
#pragma once

#include <cstdint>

namespace berth::rpc {

// Zero when the kernel does not say.
uint64_t resident_bytes();

}  // namespace berth::rpc
