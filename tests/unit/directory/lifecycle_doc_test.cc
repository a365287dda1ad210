// docs/lifecycle.md holds the table of reasons between two marks. After a change of the table:
//   BERTH_UPDATE_DOCS=1 berth-unit-directory "[lifecycle_doc]"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "server/directory/reasons.h"

namespace berth {
namespace {

const std::string kPage = std::string(BERTH_SOURCE_DIR) + "/docs/lifecycle.md";
const std::string kBegin = "<!-- reasons -->\n";
const std::string kEnd = "<!-- end of reasons -->";

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
  std::ifstream file(kPage);
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = text.find(kBegin);
  const size_t end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string before = text.substr(0, begin + kBegin.size());
  if (std::getenv("BERTH_UPDATE_DOCS")) {
    std::ofstream(kPage, std::ios::trunc) << before << table() << text.substr(end);
    return;
  }
  INFO("regenerate with BERTH_UPDATE_DOCS=1 berth-unit-directory \"[lifecycle_doc]\"");
  CHECK(text.substr(before.size(), end - before.size()) == table());
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
