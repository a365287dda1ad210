#include "common/config_document.h"

#include <sstream>
#include <toml.hpp>

namespace berth {
namespace {

ConfigNode node_from(const toml::value& value) {
  ConfigNode node;
  node.line = value.location().line();
  switch (value.type()) {
    case toml::value_t::string:
      node.kind = ConfigNode::Kind::kString;
      node.text = value.as_string().str;
      break;
    case toml::value_t::integer:
      node.kind = ConfigNode::Kind::kInteger;
      node.integer = value.as_integer();
      node.text = std::to_string(node.integer);
      break;
    case toml::value_t::boolean:
      node.kind = ConfigNode::Kind::kBoolean;
      node.boolean = value.as_boolean();
      node.text = node.boolean ? "true" : "false";
      break;
    case toml::value_t::array:
      node.kind = ConfigNode::Kind::kArray;
      node.text = "a list";
      for (const toml::value& item : value.as_array()) node.items.push_back(node_from(item));
      break;
    case toml::value_t::table:
      node.kind = ConfigNode::Kind::kTable;
      node.text = "a table";
      for (const auto& [key, member] : value.as_table())
        node.members.emplace(key, node_from(member));
      break;
    case toml::value_t::floating:
      node.kind = ConfigNode::Kind::kOther;
      node.text = toml::format(value);
      break;
    default:
      node.kind = ConfigNode::Kind::kOther;
      node.text = "a date or time";
      break;
  }
  return node;
}

// The library's message is a drawing of several lines, of which the first says what is wrong. It
// reads
// "[error] toml::parse_something: what is wrong".
std::string first_line_of(const char* what) {
  std::string line(what);
  line.resize(std::min(line.find('\n'), line.size()));
  const size_t function = line.find("toml::");
  const size_t colon = line.find(": ", function == std::string::npos ? 0 : function);
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

tl::unexpected<Error> refuse_at(const std::string& file, size_t line, const std::string& why) {
  return refuse(Reason::kInvalidConfig,
                file + ":" + std::to_string(line) + ": not valid TOML: " + why);
}

}  // namespace

Result<ConfigNode> parse_toml(const std::string& text, const std::string& file) {
  // The library reads a text without a final newline wrongly in some versions, and throws on empty
  // ones.
  std::istringstream stream(text + "\n");
  try {
    return node_from(toml::parse(stream, file));
  } catch (const toml::exception& e) {
    return refuse_at(file, e.location().line(), first_line_of(e.what()));
  } catch (const std::exception& e) {
    return refuse_at(file, 1, first_line_of(e.what()));
  }
}

}  // namespace berth
