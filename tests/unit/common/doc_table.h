// A table that a page of docs/ prints from the code, between two marks. The page is held against
// the table; with BERTH_UPDATE_DOCS in the environment it is written anew instead.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace berth::testing {

struct DocTable {
  std::string page;  // below docs/
  std::string begin_mark;
  std::string end_mark;
  std::string regenerate;  // what to run after a change of the table
};

inline void check_doc_table(const DocTable& place, const std::string& table) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/docs/" + place.page;
  std::ifstream file(path);
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin_mark = text.find(place.begin_mark);
  const size_t end = text.find(place.end_mark);
  REQUIRE(begin_mark != std::string::npos);
  REQUIRE(end != std::string::npos);
  const size_t begin = begin_mark + place.begin_mark.size();
  REQUIRE(begin <= end);
  if (std::getenv("BERTH_UPDATE_DOCS")) {
    std::ofstream(path, std::ios::trunc) << text.substr(0, begin) << table << text.substr(end);
    return;
  }
  INFO("regenerate with " << place.regenerate);
  CHECK(text.substr(begin, end - begin) == table);
}

}  // namespace berth::testing
