// A TOML file as a plain tree that remembers lines. It stands between the TOML library, which only
// config_document.cc includes, and the typed view of config.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/error.h"

namespace berth {

struct ConfigNode {
  enum class Kind : uint8_t { kString, kInteger, kBoolean, kArray, kTable, kOther };

  Kind kind = Kind::kTable;
  size_t line = 0;   // 1-based; 0 when the node is not in the file
  std::string text;  // a string's content, a number as digits, otherwise what it is, for errors
  int64_t integer = 0;
  bool boolean = false;
  std::vector<ConfigNode> items;              // of an array
  std::map<std::string, ConfigNode> members;  // of a table
};

// `file` only names the text in errors. Errors: kInvalidConfig with file, line and what is wrong.
Result<ConfigNode> parse_toml(const std::string& text, const std::string& file);

}  // namespace berth
