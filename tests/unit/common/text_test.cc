// Hex, ids and quoting: what one side prints the other reads back.
#include "common/text.h"

#include <catch2/catch.hpp>

namespace berth {

using namespace std::string_literals;

TEST_CASE("a digest survives the way to hex and back", "[common][text]") {
  const std::string digest = "\x00\x01\x7f\x80\xff"s;
  CHECK(to_hex(digest) == "00017f80ff");
  CHECK(bytes_from_hex("digest", "00017F80ff").value() == digest);
  CHECK(bytes_from_hex("digest", "").value().empty());
}

TEST_CASE("odd or foreign characters are not hex", "[common][text]") {
  const std::string text = GENERATE(as<std::string>(), "0", "0g", " 00", "0x00");
  const auto bytes = bytes_from_hex("digest", text);
  REQUIRE_FALSE(bytes.has_value());
  CHECK(bytes.error().message ==
        "digest = \"" + text + "\": not hex; accepted: pairs of 0-9 and a-f");
}

TEST_CASE("a 128-bit id is read in plain and in UUID form", "[common][text]") {
  const Id128 id{0x0123456789abcdef, 0xfedcba9876543210};
  CHECK(to_hex(id) == "0123456789abcdeffedcba9876543210");
  CHECK(id128_from_hex("boot id", to_hex(id)).value() == id);
  CHECK(id128_from_hex("boot id", "01234567-89ab-cdef-fedc-ba9876543210").value() == id);
}

TEST_CASE("a 128-bit id of another length or shape is refused", "[common][text]") {
  const std::string text =
      GENERATE(as<std::string>(), "", "01", "0123456789abcdeffedcba987654321g",
               "0123456-789ab-cdef-fedc-ba9876543210", "01234567-89ab-cdef-fedc-ba98765432101",
               "0123456789abcdeffedcba98765432100123");
  CAPTURE(text);
  CHECK_FALSE(id128_from_hex("token", text).has_value());
}

TEST_CASE("an id prints its epoch and number and reads back", "[common][text]") {
  const auto id = make_id<PoolId>(3, 17);
  CHECK(to_text(id) == "e3-17");
  CHECK(id_from_text<PoolId>("pool", "e3-17").value() == id);
  const auto last = make_id<ReplicaId>(kEpochMax, kIdCounterMax);
  CHECK(id_from_text<ReplicaId>("replica", to_text(last)).value() == last);
  CHECK(to_text(PoolId()) == "none");
}

TEST_CASE("an id in any other form is refused by name", "[common][text]") {
  const std::string text =
      GENERATE(as<std::string>(), "", "e", "17", "3-17", "e3", "e3-", "e-17", "e3-17x", "e03-17",
               "e3--17", "e0-0", "none", "e16777216-1", "e1-1099511627776", "e3- 17");
  CAPTURE(text);
  const auto id = id_from_text<PoolId>("pool", text);
  REQUIRE_FALSE(id.has_value());
  CHECK(id.error().reason == Reason::kInvalidArgument);
  CHECK(id.error().message.rfind("pool = \"" + text + "\": not an id", 0) == 0);
}

TEST_CASE("a quoted value cannot break its line", "[common][text]") {
  CHECK(quote("plain") == "\"plain\"");
  CHECK(quote("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(quote("line\nnext\ttab\x1b[31m\x7f") == "\"line\\nnext\\ttab\\x1b[31m\\x7f\"");
  CHECK(quote("nul\0byte"s) == "\"nul\\x00byte\"");
  CHECK(quote("\xc3\xa9") == "\"\\xc3\\xa9\"");
}

TEST_CASE("a quoted value is cut where its limit says", "[common][text]") {
  CHECK(quote("abcdef", 3) == "\"abc...\"");
  CHECK(quote("abc", 3) == "\"abc\"");
  CHECK(quote(std::string(1 << 20, 'x')).size() == kQuotedLengthMax + 5);
}

}  // namespace berth
