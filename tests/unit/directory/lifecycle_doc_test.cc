// docs/lifecycle.md holds the table of reasons between two marks. After a change of the table:
//   BERTH_UPDATE_DOCS=1 berth-unit-directory "[lifecycle_doc]"
#include <catch2/catch.hpp>
#include <string>

#include "server/directory/reasons.h"
#include "tests/unit/common/doc_table.h"

namespace berth {
namespace {

std::string table() {
  std::string out = "| word | state | decided by | meaning |\n| --- | --- | --- | --- |\n";
  for (int i = 1; i <= static_cast<int>(kWhyLast); ++i) {
    const WhyRow row = row_of(static_cast<Why>(i));
    out += "| `" + std::string(name_of(row.why)) + "` | " + std::string(name_of(row.state)) +
           " | " + std::string(row.decided_by) + " | " + std::string(row.meaning) + " |\n";
  }
  return out;
}

}  // namespace

TEST_CASE("the specification prints the table of reasons as it is in the code",
          "[directory][lifecycle_doc]") {
  testing::check_doc_table(
      {.page = "lifecycle.md",
       .begin_mark = "<!-- reasons -->\n",
       .end_mark = "<!-- end of reasons -->",
       .regenerate = "BERTH_UPDATE_DOCS=1 berth-unit-directory \"[lifecycle_doc]\""},
      table());
}

TEST_CASE("every reason says who decides it and what it means", "[directory][lifecycle_doc]") {
  for (int i = 1; i <= static_cast<int>(kWhyLast); ++i) {
    const WhyRow row = row_of(static_cast<Why>(i));
    INFO(name_of(row.why));
    CHECK(row.why == static_cast<Why>(i));
    CHECK_FALSE(row.decided_by.empty());
    CHECK_FALSE(row.meaning.empty());
  }
}

}  // namespace berth
