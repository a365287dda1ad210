// docs/errors.md holds the table of reasons between two marks. After a change of the table:
//   BERTH_UPDATE_DOCS=1 berth-unit-common "[errors_doc]"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "common/error.h"
#include "common/error_table.h"

namespace berth {
namespace {

const std::string kPage = std::string(BERTH_SOURCE_DIR) + "/docs/errors.md";
const std::string kBegin = "<!-- reasons: begin -->\n";
const std::string kEnd = "<!-- reasons: end -->";

struct Page {
  std::string before;
  std::string table;
  std::string after;
};

Page read_page() {
  std::ifstream file(kPage);
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = text.find(kBegin);
  const size_t end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const size_t table = begin + kBegin.size();
  REQUIRE(table <= end);
  return {text.substr(0, table), text.substr(table, end - table), text.substr(end)};
}

}  // namespace

TEST_CASE("the page of errors prints the table of reasons as it is in the code",
          "[common][errors_doc]") {
  const Page page = read_page();
  const std::string table = "\n" + render_reasons_markdown() + "\n";
  if (std::getenv("BERTH_UPDATE_DOCS")) {
    std::ofstream(kPage, std::ios::trunc) << page.before << table << page.after;
    return;
  }
  INFO("regenerate with BERTH_UPDATE_DOCS=1 berth-unit-common \"[errors_doc]\"");
  CHECK(page.table == table);
}

TEST_CASE("every reason has advice of one sentence that fits a table", "[common][errors_doc]") {
  for (const ReasonRow& row : kReasons) {
    INFO(row.name);
    CHECK(row.advice.find_first_of("|\n") == std::string_view::npos);
    REQUIRE_FALSE(row.advice.empty());
    CHECK(row.advice.back() == '.');
  }
}

}  // namespace berth
