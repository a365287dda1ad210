// docs/field-cases.md names tests and scenarios; each of them is in the tree.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace berth {
namespace {

const std::string kRoot = BERTH_SOURCE_DIR;

std::string content(const std::string& path) {
  std::ifstream file(kRoot + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A long name is written as several literals, one a line.
std::string with_joined_literals(const std::string& source) {
  return std::regex_replace(source, std::regex("\"\\s*\n\\s*\""), "");
}

}  // namespace

TEST_CASE("every test that the page of field cases names exists", "[common][field_cases_doc]") {
  std::ifstream page(kRoot + "/docs/field-cases.md");
  REQUIRE(page);
  const std::regex entry("- `(tests/[^`]+)`(: \"([^\"]+)\")?");
  size_t entries = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("- ", 0) != 0) continue;
    INFO(line);
    std::smatch match;
    REQUIRE(std::regex_match(line, match, entry));
    ++entries;
    CHECK(std::filesystem::exists(kRoot + "/" + match[1].str()));
    if (match[3].matched) {
      const std::string source = with_joined_literals(content(match[1]));
      CHECK(source.find("\"" + match[3].str() + "\"") != std::string::npos);
    }
  }
  CHECK(entries > 0);
}

}  // namespace berth
