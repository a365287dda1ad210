// What a configuration reports once everything was read: all mistakes at once, and the values in
// force.
#include <algorithm>
#include <numeric>
#include <utility>

#include "common/config.h"
#include "common/config_state.h"
#include "common/text.h"

namespace berth {
namespace {

// More than a person reads at once; the rest is counted.
constexpr size_t kMistakesShownMax = 20;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// "; did you mean size?", or what is accepted when nothing comes near.
std::string advice_for(std::string_view key, const std::set<std::string>& known) {
  if (known.empty()) return "; no keys are accepted here";
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return edit_distance(key, a) < edit_distance(key, b); });
  if (edit_distance(key, *nearest) <= std::max<size_t>(2, key.size() / 3))
    return "; did you mean " + *nearest + "?";
  std::string list = "; accepted here: ";
  for (const std::string& name : known) {
    if (name != *known.begin()) list += ", ";
    list += name;
  }
  return list;
}

// Keys come from the file: anything but a plain word is shown in quotes.
std::string shown_key(const std::string& key) {
  const std::string quoted = quote(key);
  const bool plain = key.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-") == std::string::npos;
  return plain && !key.empty() ? key : quoted;
}

void collect_unknown(const ConfigState& state, const ConfigNode& table, const std::string& path,
                     std::vector<ConfigState::Mistake>& out) {
  static const std::set<std::string> kNone;
  const auto found = state.known.find(path);
  const std::set<std::string>& known = found == state.known.end() ? kNone : found->second;
  for (const auto& [key, value] : table.members) {
    const std::string member = config_path(path, shown_key(key));
    if (known.count(key) == 0) {
      out.push_back({value.line, "unknown key " + member + advice_for(key, known)});
    } else if (value.kind == ConfigNode::Kind::kTable && state.known.count(member) != 0) {
      collect_unknown(state, value, member, out);
    } else if (value.kind == ConfigNode::Kind::kArray) {
      for (size_t i = 0; i < value.items.size(); ++i) {
        const std::string element = member + "[" + std::to_string(i) + "]";
        if (state.known.count(element) != 0) collect_unknown(state, value.items[i], element, out);
      }
    }
  }
}

}  // namespace

std::string config_path(const std::string& table_path, std::string_view key) {
  return table_path.empty() ? std::string(key) : table_path + "." + std::string(key);
}

std::vector<ConfigState::Mistake> unknown_keys(const ConfigState& state) {
  std::vector<ConfigState::Mistake> mistakes;
  collect_unknown(state, state.document, "", mistakes);
  return mistakes;
}

Result<> Config::finish() const {
  std::vector<ConfigState::Mistake> mistakes = state_->mistakes;
  for (auto& unknown : unknown_keys(*state_)) mistakes.push_back(std::move(unknown));
  if (mistakes.empty()) return {};
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  std::string message;
  for (size_t i = 0; i < std::min(mistakes.size(), kMistakesShownMax); ++i) {
    if (i > 0) message += '\n';
    message += state_->file;
    if (mistakes[i].line != 0) message += ":" + std::to_string(mistakes[i].line);
    message += ": " + mistakes[i].text;
  }
  if (mistakes.size() > kMistakesShownMax)
    message += "\nand " + std::to_string(mistakes.size() - kMistakesShownMax) + " more";
  return refuse(Reason::kInvalidConfig, std::move(message));
}

std::string Config::describe() const {
  std::string text;
  for (const auto& [path, value, line] : state_->effective)
    text += path + " = " + value + (line == 0 ? "  # default\n" : "\n");
  return text;
}

}  // namespace berth
