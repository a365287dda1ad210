// What was given to one command, by the name of the option ("--pool") or of the positional
// ("SESSION"). Values are texts as typed; the typed readers refuse with a usage failure that quotes
// name, value and the accepted form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/ctl/failure.h"

namespace berth::ctl {

class Arguments {
 public:
  void set(std::string_view name, std::vector<std::string> values) {
    values_.insert_or_assign(std::string(name), std::move(values));
  }

  bool has(std::string_view name) const { return values_.contains(std::string(name)); }
  // Empty when it was not given.
  std::string text(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;

  // These answer `fallback` when it was not given.
  Answer<uint64_t> count(std::string_view name, uint64_t fallback) const;
  // "e3-17"; zero when it was not given.
  Answer<uint64_t> id(std::string_view name) const;
  Answer<uint64_t> size(std::string_view name, uint64_t fallback) const;
  // Bytes spelled in hex; empty when it was not given.
  Answer<std::string> hex(std::string_view name) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

// "e3-17" as a number. `name` is the option or positional that the error quotes.
Answer<uint64_t> parse_id(std::string_view name, std::string_view text);

}  // namespace berth::ctl
