// The words that operators read (codes, reasons, event kinds) are explained in docs/; a word that
// is added to the code is added there.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "server/directory/event.h"
#include "server/directory/types.h"

namespace berth {
namespace {

std::string page(const std::string& name) {
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/docs/" + name);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A row of a table that begins with the word.
bool explains(const std::string& text, std::string_view word) {
  return text.find("\n| `" + std::string(word) + "` |") != std::string::npos;
}

// Checks `count` words from `first` on, and that there is no further one.
template <class Enum>
void check_words(const std::string& text, Enum first, int count) {
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(static_cast<int>(first) + i);
    INFO(name_of(value));
    CHECK(explains(text, name_of(value)));
  }
  CHECK(name_of(static_cast<Enum>(static_cast<int>(first) + count)) == "unknown");
}

}  // namespace

TEST_CASE("every code of a store and of a miss is explained in docs/errors.md",
          "[directory][words_doc]") {
  const std::string errors = page("errors.md");
  check_words(errors, StoreCode::kGranted, 12);
  check_words(errors, MissReason::kNotPresent, 9);
}

TEST_CASE("every kind of event is explained in docs/operations.md", "[directory][words_doc]") {
  check_words(page("operations.md"), EventKind::kServerStarted,
              static_cast<int>(EventKind::kJobDone) + 1);
}

}  // namespace berth
