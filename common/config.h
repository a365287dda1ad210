// A configuration file as a typed view that collects what is wrong instead of stopping at the first
// mistake. Getters always return a usable value (the fallback when the file's is refused); the
// caller reads everything and then asks finish(), which reports every bad value and every key that
// nobody asked for, each as "FILE:LINE: key = value: what is wrong; what is accepted".
//
//   auto config = Config::load("/etc/berth/berthd.toml");        // Result<Config>
//   ConfigTable store = config->root().table("store");
//   options.path = store.required_string("path");
//   options.flush_every = store.duration("flush_every", milliseconds(100), {milliseconds(1),
//   seconds(10)}); if (auto read = config->finish(); !read) return tl::unexpected(read.error());
//
// Views share the document and may outlive the Config. Not thread-safe: it is used before threads
// start.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/time.h"

namespace berth {

struct ConfigNode;
struct ConfigState;

// A config file is written by people; anything larger is a mistake in the path.
inline constexpr size_t kConfigFileBytesMax = 1 << 20;

template <class T>
struct Range {
  T min;
  T max;
};
inline constexpr Range<uint64_t> kAnySize{0, std::numeric_limits<int64_t>::max()};
inline constexpr Range<Duration> kAnyDuration{{0}, {std::numeric_limits<int64_t>::max()}};

class ConfigTable {
 public:
  // Whether the file itself has the key, whatever its value. Does not count as asking for it.
  bool has(std::string_view key) const;

  std::string string(std::string_view key, std::string_view fallback);
  std::string required_string(std::string_view key);
  // One of a few words, e.g. choice("durability", "interval", {"sync", "interval", "none"}).
  std::string choice(std::string_view key, std::string_view fallback,
                     const std::vector<std::string>& accepted);
  bool boolean(std::string_view key, bool fallback);
  int64_t integer(std::string_view key, int64_t fallback, Range<int64_t> range);
  // The forms of units.h; a bare TOML integer counts as bytes.
  uint64_t size(std::string_view key, uint64_t fallback, Range<uint64_t> range = kAnySize);
  uint64_t required_size(std::string_view key, Range<uint64_t> range = kAnySize);
  Duration duration(std::string_view key, Duration fallback, Range<Duration> range = kAnyDuration);
  std::vector<std::string> strings(std::string_view key, const std::vector<std::string>& fallback);

  // A [key] table. One that the file lacks reads as empty, so its keys take their fallbacks.
  ConfigTable table(std::string_view key);
  // The [[key]] tables, in the file's order; more than `count_max` are refused.
  std::vector<ConfigTable> tables(std::string_view key, size_t count_max);

  // Refuses a value that a getter accepted, e.g. because it does not go with another:
  // "FILE:LINE: key = value: why".
  void refuse_key(std::string_view key, std::string_view why);

 private:
  friend class Config;
  ConfigTable(std::shared_ptr<ConfigState> state, const ConfigNode* node, std::string path);

  // The member, noting that the key is known; null when the file lacks it.
  const ConfigNode* ask(std::string_view key);
  std::string path_of(std::string_view key) const;
  void refuse_value(std::string_view key, const ConfigNode& value, std::string_view why);
  void refuse_missing(std::string_view key, std::string_view accepted);
  // Notes the value in force for describe().
  void note(std::string_view key, std::string text, const ConfigNode* from);
  uint64_t size_or(std::string_view key, uint64_t fallback, Range<uint64_t> range,
                   const ConfigNode* value);

  std::shared_ptr<ConfigState> state_;
  const ConfigNode* node_;  // points into state_; null for a table that the file lacks
  std::string path_;        // "" for the root, else "pool[0]"
};

class Config {
 public:
  // Errors: kInvalidConfig naming the file: it cannot be read, is too large, or is not TOML.
  static Result<Config> load(const std::string& path);
  static Result<Config> parse(const std::string& text, const std::string& file);

  ConfigTable root() const;

  // All mistakes at once, one per line, in the order of the file. Call it after the last getter.
  Result<> finish() const;

  // The values in force, one "key = value" per line in the order they were asked for: sizes in
  // bytes, durations in milliseconds, defaults marked. For --check-config.
  std::string describe() const;

 private:
  explicit Config(std::shared_ptr<ConfigState> state);
  std::shared_ptr<ConfigState> state_;
};

}  // namespace berth
