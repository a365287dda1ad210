// The one rule for names that people and peers choose: workers, engines, nodes, pools, namespaces.
// Such a name becomes part of file names, log lines and metric labels, so it is checked where it
// enters.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/error.h"

namespace berth {

inline constexpr size_t kNameLengthMax = 64;
inline constexpr size_t kNamespaceNameLengthMax = 128;

// 1..length_max characters A-Z a-z 0-9 . _ -, not starting with '.' or '-'. `thing` names what is
// being named, e.g. "worker name". Errors: kInvalidArgument, with thing, value and the accepted
// form.
Result<> validate_name(std::string_view thing, std::string_view name,
                       size_t length_max = kNameLengthMax);

}  // namespace berth
