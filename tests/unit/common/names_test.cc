// Names of workers, engines, nodes, pools and namespaces (they reach file names and logs).
#include "common/names.h"

#include <catch2/catch.hpp>
#include <string>

namespace berth {

using namespace std::string_literals;

TEST_CASE("letters, digits, dot, underscore and dash make a name", "[common][names]") {
  const std::string name =
      GENERATE(as<std::string>(), "w", "gpu-0", "node.example_1", "0", "_x", "A");
  CHECK(validate_name("worker name", name).has_value());
  CHECK(validate_name("worker name", std::string(64, 'n')).has_value());
  CHECK(validate_name("namespace", std::string(128, 'n'), kNamespaceNameLengthMax).has_value());
}

TEST_CASE("a name that could leave its directory, look like an option or forge a log is refused",
          "[common][names]") {
  const std::string name = GENERATE(as<std::string>(), "", ".", "..", "../w", "a/b", "/etc", "-rf",
                                    ".hidden", "a b", "a\nb", "nul\0byte"s, "caf\xc3\xa9", "a*");
  CAPTURE(name);
  const auto verdict = validate_name("worker name", name);
  REQUIRE_FALSE(verdict.has_value());
  CHECK(verdict.error().reason == Reason::kInvalidArgument);
  CHECK(verdict.error().message.rfind("worker name = \"", 0) == 0);
  CHECK(verdict.error().message.find('\n') == std::string::npos);
}

TEST_CASE("a name longer than its bound is refused and the bound is named", "[common][names]") {
  const auto verdict = validate_name("pool name", std::string(65, 'p'));
  REQUIRE_FALSE(verdict.has_value());
  CHECK(verdict.error().message.find("1 to 64 characters") != std::string::npos);
  CHECK_FALSE(
      validate_name("namespace", std::string(129, 'n'), kNamespaceNameLengthMax).has_value());
  CHECK_FALSE(validate_name("pool name", std::string(300, 'p')).has_value());
}

}  // namespace berth
