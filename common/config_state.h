// What the views of one configuration file share: the parsed tree, which keys were asked for, the
// values in force and the mistakes found so far. Private to config.cc and config_report.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/config_document.h"

namespace berth {

struct ConfigState {
  struct Mistake {
    size_t line = 0;  // 0: something is missing
    std::string text;
  };
  struct Effective {
    std::string path;
    std::string text;
    size_t line = 0;  // 0: a default
  };

  std::string file;
  ConfigNode document;
  // By table path ("" is the root, "pool[0]" an array's element): the keys that somebody asked for.
  std::map<std::string, std::set<std::string>> known;
  std::vector<Effective> effective;
  std::vector<Mistake> mistakes;
};

// "pool[0].size", or "size" in the root.
std::string config_path(const std::string& table_path, std::string_view key);

// Every key of the file that nobody asked for, each with the nearest one that is known.
std::vector<ConfigState::Mistake> unknown_keys(const ConfigState& state);

}  // namespace berth
