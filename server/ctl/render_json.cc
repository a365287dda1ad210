#include <nlohmann/json.hpp>

#include "server/ctl/render.h"

namespace berth::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Column& column, const Value& value) {
  switch (column.kind) {
    case Kind::kFlag:
    case Kind::kCount:
    case Kind::kBytes:
    case Kind::kMillis:
    case Kind::kUnixMillis:
    case Kind::kList:
      return std::visit(
          [](const auto& held) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
              return nullptr;
            else
              return held;
          },
          value);
    case Kind::kText:
    case Kind::kWord:
    case Kind::kId:
    case Kind::kHex:
      break;
  }
  // A text that is empty stays a text; only what is not there at all is null.
  const bool is_none = std::holds_alternative<std::monostate>(value) ||
                       (column.kind == Kind::kId && std::get<uint64_t>(value) == 0);
  return is_none ? Json(nullptr) : Json(data_text(column, value));
}

void add_members(Json& object, const Section& section, const Row& row) {
  for (size_t i = 0; i < section.columns.size(); ++i)
    if (section.columns[i].shown != Shown::kTableOnly)
      object[std::string(section.columns[i].key)] = json_of(section.columns[i], row[i]);
}

Json object_of(const Section& section, const Row& row) {
  Json object = Json::object();
  add_members(object, section, row);
  return object;
}

// Bytes that are not UTF-8 become U+FFFD: a view must never fail because of what somebody else
// named.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string render_json(const View& view, JsonForm form) {
  Json object = Json::object();
  if (!view.taken_at.empty()) object["time"] = view.taken_at;
  for (const Section& section : view.sections) {
    if (section.layout == Layout::kRecord) {
      for (const Row& row : section.rows) add_members(object, section, row);
      continue;
    }
    Json rows = Json::array();
    for (const Row& row : section.rows) rows.push_back(object_of(section, row));
    object[std::string(section.name)] = std::move(rows);
  }
  if (view.more) object["more"] = *view.more;
  return dumped(object, form == JsonForm::kIndented ? 2 : -1);
}

std::string render_json_lines(const Section& section) {
  std::string text;
  for (const Row& row : section.rows) text += dumped(object_of(section, row), -1);
  return text;
}

}  // namespace berth::ctl
