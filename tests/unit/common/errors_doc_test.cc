// docs/errors.md holds the table of reasons between two marks. After a change of the table:
//   BERTH_UPDATE_DOCS=1 berth-unit-common "[errors_doc]"
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/error_table.h"
#include "tests/unit/common/doc_table.h"

namespace berth {

TEST_CASE("the page of errors prints the table of reasons as it is in the code",
          "[common][errors_doc]") {
  testing::check_doc_table({.page = "errors.md",
                            .begin_mark = "<!-- reasons: begin -->\n",
                            .end_mark = "<!-- reasons: end -->",
                            .regenerate = "BERTH_UPDATE_DOCS=1 berth-unit-common \"[errors_doc]\""},
                           "\n" + render_reasons_markdown() + "\n");
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
