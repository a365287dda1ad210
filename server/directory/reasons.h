// What each reason of a replica's record means, for people: the table of docs/lifecycle.md is
// printed from here. Nothing is decided by these words.
#pragma once

#include <string_view>

#include "server/directory/types.h"

namespace berth {

struct WhyRow {
  Why why = Why::kNone;
  ReplicaState state = ReplicaState::kRetiring;
  std::string_view decided_by;
  std::string_view meaning;
};

// `why` is not kNone.
WhyRow row_of(Why why);

}  // namespace berth
