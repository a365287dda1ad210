#include "common/config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "common/config_state.h"
#include "common/text.h"
#include "common/units.h"

namespace berth {
namespace {

using Kind = ConfigNode::Kind;

// A value as its writer sees it: strings in quotes, everything else bare.
std::string shown(const ConfigNode& value) {
  return value.kind == Kind::kString ? quote(value.text) : value.text;
}

std::string size_text(uint64_t bytes) {
  return std::to_string(bytes) + " bytes (" + format_size(bytes) + ")";
}
std::string duration_text(Duration duration) {
  return std::to_string(duration.millis) + " ms (" + format_duration(duration) + ")";
}

// "[a, b]" for the words of a choice or the items of a list.
std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += quote(word);
  }
  return text;
}

// "1MiB to 2GiB", "at least 1MiB" or "at most 2GiB": an open end is not worth a number.
template <class T, class Format>
std::string range_text(Range<T> range, T highest, Format format) {
  if (range.max == highest) return "at least " + format(range.min);
  return format(range.min) + " to " + format(range.max);
}

// The part of a units error after the name and the value: "not a size; accepted: ...".
std::string why_of(const Error& error, std::string_view key, std::string_view text) {
  return error.message.substr(name_and_value(key, text).size() + 2);
}

}  // namespace

ConfigTable::ConfigTable(std::shared_ptr<ConfigState> state, const ConfigNode* node,
                         std::string path)
    : state_(std::move(state)), node_(node), path_(std::move(path)) {}

bool ConfigTable::has(std::string_view key) const {
  return node_ != nullptr && node_->members.count(std::string(key)) != 0;
}

const ConfigNode* ConfigTable::ask(std::string_view key) {
  state_->known[path_].insert(std::string(key));
  if (!has(key)) return nullptr;
  return &node_->members.at(std::string(key));
}

std::string ConfigTable::path_of(std::string_view key) const { return config_path(path_, key); }

void ConfigTable::refuse_value(std::string_view key, const ConfigNode& value,
                               std::string_view why) {
  state_->mistakes.push_back(
      {value.line, path_of(key) + " = " + shown(value) + ": " + std::string(why)});
}

void ConfigTable::refuse_missing(std::string_view key, std::string_view accepted) {
  const size_t line = node_ == nullptr || path_.empty() ? 0 : node_->line;
  state_->mistakes.push_back(
      {line, path_of(key) + ": missing; accepted: " + std::string(accepted)});
}

void ConfigTable::note(std::string_view key, std::string text, const ConfigNode* from) {
  state_->effective.push_back({path_of(key), std::move(text), from == nullptr ? 0 : from->line});
}

void ConfigTable::refuse_key(std::string_view key, std::string_view why) {
  if (has(key)) return refuse_value(key, node_->members.at(std::string(key)), why);
  const std::string path = path_of(key);
  const auto& noted = state_->effective;
  const auto found = std::find_if(noted.rbegin(), noted.rend(),
                                  [&](const auto& effective) { return effective.path == path; });
  const std::string value =
      found == noted.rend() ? " (not set)" : " = " + found->text + " (default)";
  state_->mistakes.push_back({0, path + value + ": " + std::string(why)});
}

std::string ConfigTable::string(std::string_view key, std::string_view fallback) {
  const ConfigNode* value = ask(key);
  std::string text(fallback);
  if (value != nullptr && value->kind == Kind::kString) text = value->text;
  if (value != nullptr && value->kind != Kind::kString)
    refuse_value(key, *value, "not a text; accepted: text in double quotes");
  note(key, quote(text), value);
  return text;
}

std::string ConfigTable::required_string(std::string_view key) {
  if (!has(key)) refuse_missing(key, "text in double quotes");
  std::string text = string(key, "");
  if (has(key) && ask(key)->kind == Kind::kString && text.empty())
    refuse_value(key, *ask(key), "empty; accepted: text in double quotes");
  return text;
}

std::string ConfigTable::choice(std::string_view key, std::string_view fallback,
                                const std::vector<std::string>& accepted) {
  const ConfigNode* value = ask(key);
  std::string word(fallback);
  const bool known = value != nullptr && value->kind == Kind::kString &&
                     std::count(accepted.begin(), accepted.end(), value->text) != 0;
  if (known) word = value->text;
  if (value != nullptr && !known)
    refuse_value(key, *value, "not a choice; accepted: " + joined(accepted, ", "));
  note(key, quote(word), value);
  return word;
}

bool ConfigTable::boolean(std::string_view key, bool fallback) {
  const ConfigNode* value = ask(key);
  bool result = fallback;
  if (value != nullptr && value->kind == Kind::kBoolean) result = value->boolean;
  if (value != nullptr && value->kind != Kind::kBoolean)
    refuse_value(key, *value, "not a switch; accepted: true or false");
  note(key, result ? "true" : "false", value);
  return result;
}

int64_t ConfigTable::integer(std::string_view key, int64_t fallback, Range<int64_t> range) {
  const ConfigNode* value = ask(key);
  int64_t result = fallback;
  const bool in_range = value != nullptr && value->kind == Kind::kInteger &&
                        value->integer >= range.min && value->integer <= range.max;
  if (in_range) result = value->integer;
  if (value != nullptr && !in_range)
    refuse_value(key, *value,
                 std::string(value->kind == Kind::kInteger ? "out of range" : "not a number") +
                     "; accepted: a whole number from " + std::to_string(range.min) + " to " +
                     std::to_string(range.max));
  note(key, std::to_string(result), value);
  return result;
}

uint64_t ConfigTable::size_or(std::string_view key, uint64_t fallback, Range<uint64_t> range,
                              const ConfigNode* value) {
  if (value == nullptr) return fallback;
  if (value->kind != Kind::kString && value->kind != Kind::kInteger) {
    refuse_value(key, *value, why_of(parse_size(key, "").error(), key, ""));
    return fallback;
  }
  const auto bytes = parse_size(key, value->text);
  if (bytes && *bytes >= range.min && *bytes <= range.max) return *bytes;
  refuse_value(key, *value,
               !bytes ? why_of(bytes.error(), key, value->text)
                      : "out of range; accepted: " + range_text(range, kAnySize.max, exact_size));
  return fallback;
}

uint64_t ConfigTable::size(std::string_view key, uint64_t fallback, Range<uint64_t> range) {
  const ConfigNode* value = ask(key);
  const uint64_t bytes = size_or(key, fallback, range, value);
  note(key, size_text(bytes), value);
  return bytes;
}

uint64_t ConfigTable::required_size(std::string_view key, Range<uint64_t> range) {
  if (!has(key)) refuse_missing(key, "a size, e.g. \"8GiB\"");
  return size(key, range.min, range);
}

Duration ConfigTable::duration(std::string_view key, Duration fallback, Range<Duration> range) {
  const ConfigNode* value = ask(key);
  Duration result = fallback;
  if (value != nullptr) {
    const bool is_text = value->kind == Kind::kString || value->kind == Kind::kInteger;
    const std::string text = is_text ? value->text : "";
    const auto parsed = parse_duration(key, text);
    if (parsed && *parsed >= range.min && *parsed <= range.max)
      result = *parsed;
    else
      refuse_value(key, *value,
                   !parsed ? why_of(parsed.error(), key, text)
                           : "out of range; accepted: " +
                                 range_text(range, kAnyDuration.max, format_duration));
  }
  note(key, duration_text(result), value);
  return result;
}

std::vector<std::string> ConfigTable::strings(std::string_view key,
                                              const std::vector<std::string>& fallback) {
  const ConfigNode* value = ask(key);
  std::vector<std::string> result = fallback;
  if (value != nullptr) {
    const bool is_list = value->kind == Kind::kArray &&
                         std::all_of(value->items.begin(), value->items.end(),
                                     [](const auto& i) { return i.kind == Kind::kString; });
    if (!is_list) refuse_value(key, *value, R"(not a list of texts; accepted: ["a", "b"])");
    if (is_list) {
      result.clear();
      for (const ConfigNode& item : value->items) result.push_back(item.text);
    }
  }
  note(key, "[" + joined(result, ", ") + "]", value);
  return result;
}

ConfigTable ConfigTable::table(std::string_view key) {
  const ConfigNode* value = ask(key);
  if (value != nullptr && value->kind != Kind::kTable) {
    refuse_value(key, *value, "not a table; accepted: [" + path_of(key) + "] and keys under it");
    value = nullptr;
  }
  return ConfigTable(state_, value, path_of(key));
}

std::vector<ConfigTable> ConfigTable::tables(std::string_view key, size_t count_max) {
  const ConfigNode* value = ask(key);
  if (value == nullptr) return {};
  const bool is_list = value->kind == Kind::kArray &&
                       std::all_of(value->items.begin(), value->items.end(),
                                   [](const auto& item) { return item.kind == Kind::kTable; });
  if (!is_list || value->items.size() > count_max) {
    refuse_value(key, *value,
                 is_list ? "too many tables; accepted: at most " + std::to_string(count_max)
                         : "not a list of tables; accepted: [[" + path_of(key) + "]], repeated");
    return {};
  }
  std::vector<ConfigTable> result;
  for (size_t i = 0; i < value->items.size(); ++i)
    result.push_back(
        ConfigTable(state_, &value->items[i], path_of(key) + "[" + std::to_string(i) + "]"));
  return result;
}

Config::Config(std::shared_ptr<ConfigState> state) : state_(std::move(state)) {}

Result<Config> Config::load(const std::string& path) {
  const auto cannot = [&](const char* why) {
    return refuse(Reason::kInvalidConfig, path + ": cannot read the configuration: " + why);
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot(std::strerror(errno));
  std::string text(kConfigFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) return cannot(std::strerror(errno));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kConfigFileBytesMax)
    return cannot("it is larger than 1MiB, so it is hardly a configuration");
  return parse(text, path);
}

Result<Config> Config::parse(const std::string& text, const std::string& file) {
  auto document = parse_toml(text, file);
  if (!document) return tl::unexpected(document.error());
  auto state = std::make_shared<ConfigState>();
  state->file = file;
  state->document = std::move(*document);
  return Config(std::move(state));
}

ConfigTable Config::root() const { return ConfigTable(state_, &state_->document, ""); }

}  // namespace berth
