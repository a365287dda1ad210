// How far a drain is, shown while it goes on: a bar that is redrawn on a terminal, a line for each
// change elsewhere. Written to stderr, so that the data on stdout stays data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "server/ctl/console.h"

namespace berth::ctl {

// What is left in pools that drain.
struct DrainLeft {
  uint64_t ready = 0;
  uint64_t leased = 0;  // of all
  uint64_t writing = 0;
  uint64_t retiring = 0;
  uint64_t quarantined = 0;
  bool undrained = false;  // somebody took one of the pools back into use

  uint64_t replicas() const { return ready + writing + retiring + quarantined; }
  // "38 replicas left: 12 ready, 26 retiring; 3 leased".
  std::string text() const;
};
DrainLeft left_in(const std::vector<v1::PoolRow>& pools);

class DrainProgress {
 public:
  explicit DrainProgress(Console& console) : console_(console) {}
  ~DrainProgress() { end_line(); }

  void show(const DrainLeft& left);
  // A sentence on a line of its own.
  void say(const std::string& sentence);

 private:
  void end_line();

  Console& console_;
  uint64_t most_ = 0;  // what 100 % is: the most that was ever left
  std::string shown_;
  bool line_is_open_ = false;
};

}  // namespace berth::ctl
