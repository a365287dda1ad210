#include "common/names.h"

#include <algorithm>
#include <string>

#include "common/text.h"

namespace berth {
namespace {

// Not isalnum(): that one depends on the locale.
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

Result<> validate_name(std::string_view thing, std::string_view name, size_t length_max) {
  const bool accepted = !name.empty() && name.size() <= length_max && name[0] != '.' &&
                        name[0] != '-' && std::all_of(name.begin(), name.end(), is_name_character);
  if (accepted) return {};
  return refuse(Reason::kInvalidArgument,
                name_and_value(thing, name) + ": not a name; accepted: 1 to " +
                    std::to_string(length_max) +
                    " characters A-Z a-z 0-9 . _ - that do not start with '.' or '-'");
}

}  // namespace berth
