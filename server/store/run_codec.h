// Runs and what became of them as stored messages, and back. Decoding trusts nothing: false is a
// value that fits no run. Keeps its messages, because a commit may write many runs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/directory/mutation.h"
#include "server/store/run_index.h"

namespace berth {

// How many mutations from the first on are one run: first records of READY replicas of one
// namespace whose ids follow each other.
size_t run_length(std::span<const Mutation> mutations);

class RunCodec {
 public:
  RunCodec();
  ~RunCodec();

  // Values; valid until the next call.
  std::string_view encode(std::span<const Mutation> run);
  std::string_view encode_changes(const Run& run);

  // The replicas as they were made. They go into `replicas`, which is emptied first.
  [[nodiscard]] bool decode(uint64_t first, std::string_view value, std::vector<Replica>& replicas);
  // `run` has its count already.
  [[nodiscard]] bool decode_changes(std::string_view value, Run& run);

 private:
  struct Messages;
  std::unique_ptr<Messages> messages_;
  std::string value_;
};

}  // namespace berth
