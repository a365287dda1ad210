#include "server/ctl/fields.h"

namespace berth::ctl {

Value word_of(std::string_view name, std::string_view prefix, int number) {
  if (number == 0) return {};
  if (!name.starts_with(prefix)) return std::to_string(number);
  std::string word(name.substr(prefix.size()));
  for (char& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return word;
}

}  // namespace berth::ctl
