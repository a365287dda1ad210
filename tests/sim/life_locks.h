// The life locks of one host's runtime directories: a lock is free when nobody who inherited its
// descriptor is left. Names are never used twice here.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace berth::sim {

class LifeLocks {
 public:
  void take(const std::string& name) { ++holders_[name]; }
  void inherit(const std::string& name) { ++holders_[name]; }  // by a fork
  void let_go(const std::string& name) { --holders_[name]; }
  bool is_free(const std::string& name) const {
    const auto it = holders_.find(name);
    return it == holders_.end() || it->second == 0;
  }

 private:
  std::map<std::string, int64_t> holders_;
};

}  // namespace berth::sim
