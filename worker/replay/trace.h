// A request trace: what engines were asked, in order. One JSON object a line:
//   {"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 14, 15]}
// timestamp in milliseconds from the start, lengths in tokens, hash_ids one a block of the prompt.
// Two requests share a prefix as far as their hash_ids agree from the first on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/error.h"

namespace berth::replay {

// Bounds of one line: a prompt of a million tokens has 2000 blocks of 512.
inline constexpr size_t kBlocksPerRequestMax = 1 << 16;

struct Request {
  uint64_t timestamp_ms = 0;
  uint64_t input_length = 0;
  uint64_t output_length = 0;
  std::vector<uint64_t> hash_ids;
};

// At most `requests_max` requests from the beginning; zero: all. Errors: kInvalidArgument naming
// file and line.
Result<std::vector<Request>> read_trace(const std::string& path, size_t requests_max);

uint64_t count_blocks(const std::vector<Request>& requests);

}  // namespace berth::replay
