// The floors that are no server: what the machine itself needs for the bytes, for the disk, and
// what berthd's core needs for the decisions. Each is measured in the same rounds as the figure
// beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/error.h"
#include "tests/bench/rpc/directory_call.h"

namespace berth::bench {

// Copies of a cycle's messages, request and answer, per second.
double copies_per_second(const std::vector<MessageSizes>& sizes, double seconds);

// Appends of `bytes`, each followed by fdatasync, per second; to a file in `folder`, which is
// removed again. Errors: kIoError.
Result<double> syncs_per_second(const std::string& folder, uint64_t bytes, double seconds);

}  // namespace berth::bench
