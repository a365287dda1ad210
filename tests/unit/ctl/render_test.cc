#include "server/ctl/render.h"

#include <catch2/catch.hpp>

namespace berth::ctl {
namespace {

// Two pools as every form of output must show them.
Section pools() {
  return {.name = "pools",
          .columns = {{"pool", "POOL", Kind::kId},
                      {"name", "NAME", Kind::kText},
                      {"state", "STATE", Kind::kWord},
                      {"used_bytes", "USED", Kind::kBytes},
                      {"lost", "LOST", Kind::kCount, Shown::kEverywhere, true},
                      {"age_ms", "AGE", Kind::kMillis},
                      {"digest", "DIGEST", Kind::kHex, Shown::kDataOnly}},
          .rows = {{uint64_t{(3ull << 40) + 17}, std::string("cpu"), std::string("live"),
                    uint64_t{1536}, uint64_t{0}, int64_t{250}, std::string("\xab\x01", 2)},
                   {uint64_t{0}, std::string("long-name"), std::string("gone"),
                    uint64_t{8ull << 30}, uint64_t{12}, std::monostate{}, std::string()}},
          .when_empty = "No pools."};
}

Section with_text(std::string text) {
  return {.name = "names",
          .columns = {{"name", "NAME", Kind::kText}, {"count", "COUNT", Kind::kCount}},
          .rows = {{std::move(text), uint64_t{7}}}};
}

View view_of(Section section) {
  View view;
  view.sections.push_back(std::move(section));
  return view;
}

}  // namespace

TEST_CASE("a table aligns texts to the left and numbers to the right", "[ctl][render]") {
  CHECK(render_table(view_of(pools()), {}) ==
        "POOL   NAME       STATE    USED  LOST    AGE\n"
        "e3-17  cpu        live   1.5KiB     0  250ms\n"
        "-      long-name  gone     8GiB    12      -\n");
}

TEST_CASE("a record is one line per field", "[ctl][render]") {
  const Section section{
      .name = "status",
      .layout = Layout::kRecord,
      .columns = {{"version", "Version", Kind::kText}, {"uptime_ms", "Up for", Kind::kMillis}},
      .rows = {{std::string("0.1.0"), uint64_t{90'000}}}};
  CHECK(render_table(view_of(section), {}) == "Version  0.1.0\nUp for   90s\n");
  CHECK(render_csv(view_of(section)) == "version,uptime_ms\n0.1.0,90000\n");
  CHECK(render_json(view_of(section), JsonForm::kOneLine) ==
        "{\"version\":\"0.1.0\",\"uptime_ms\":90000}\n");
}

TEST_CASE("a table without rows says so in words, CSV and JSON in their own way", "[ctl][render]") {
  Section section = pools();
  section.rows.clear();
  CHECK(render_table(view_of(section), {}) == "No pools.\n");
  CHECK(render_csv(view_of(section)) == "pool,name,state,used_bytes,lost,age_ms,digest\n");
  CHECK(render_json(view_of(section), JsonForm::kOneLine) == "{\"pools\":[]}\n");
}

TEST_CASE("CSV and JSON hold exact numbers, ids as text and digests as hex", "[ctl][render]") {
  CHECK(render_csv(view_of(pools())) ==
        "pool,name,state,used_bytes,lost,age_ms,digest\n"
        "e3-17,cpu,live,1536,0,250,ab01\n"
        ",long-name,gone,8589934592,12,,\n");
  CHECK(render_json(view_of(pools()), JsonForm::kOneLine) ==
        "{\"pools\":["
        "{\"pool\":\"e3-17\",\"name\":\"cpu\",\"state\":\"live\",\"used_bytes\":1536,\"lost\":0,"
        "\"age_ms\":250,\"digest\":\"ab01\"},"
        "{\"pool\":null,\"name\":\"long-name\",\"state\":\"gone\",\"used_bytes\":8589934592,"
        "\"lost\":12,\"age_ms\":null,\"digest\":\"\"}]}\n");
}

TEST_CASE("the largest numbers come out digit by digit", "[ctl][render]") {
  Section section = with_text("x");
  section.rows[0][1] = UINT64_MAX;
  CHECK(render_json_lines(section) == "{\"name\":\"x\",\"count\":18446744073709551615}\n");
  section.rows[0][1] = INT64_MIN;
  CHECK(render_csv(view_of(section)) == "name,count\nx,-9223372036854775808\n");
}

TEST_CASE("what a terminal might obey is escaped in tables", "[ctl][render]") {
  const struct {
    std::string text;
    std::string shown;
  } cases[] = {
      {"two\nlines", "two\\nlines"},
      {"a\tb", "a\\tb"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {std::string("nul\0byte", 8), "nul\\x00byte"},
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},
      {"del\x7f", "del\\x7f"},
      {"C:\\temp", "C:\\temp"},
      {"", "-"},
  };
  for (const auto& c : cases) CHECK(table_text({"name", "NAME", Kind::kText}, c.text) == c.shown);
}

TEST_CASE("CSV quotes commas, quotes and line ends, and nothing else", "[ctl][render]") {
  const struct {
    std::string text;
    std::string field;
  } cases[] = {
      {"plain text", "plain text"},
      {"a,b", "\"a,b\""},
      {"say \"no\"", "\"say \"\"no\"\"\""},
      {"two\nlines", "\"two\nlines\""},
      {"back\r", "\"back\r\""},
      {"", ""},
  };
  for (const auto& c : cases)
    CHECK(render_csv(view_of(with_text(c.text)), CsvHeader::kOmitted) == c.field + ",7\n");
}

TEST_CASE("JSON survives bytes that are not UTF-8", "[ctl][render]") {
  CHECK(render_json_lines(with_text("a\xff"
                                    "b\n")) ==
        "{\"name\":\"a\xef\xbf\xbd"
        "b\\n\",\"count\":7}\n");
}

TEST_CASE("a CSV of several sections names the section and joins their columns", "[ctl][render]") {
  View view = view_of(pools());
  view.sections[0].rows.resize(1);
  view.sections.push_back(with_text("w1"));
  CHECK(render_csv(view) ==
        "table,pool,name,state,used_bytes,lost,age_ms,digest,count\n"
        "pools,e3-17,cpu,live,1536,0,250,ab01,\n"
        "names,,w1,,,,,,7\n");
  CHECK(render_table(view, {}) ==
        "POOL   NAME  STATE    USED  LOST    AGE\n"
        "e3-17  cpu   live   1.5KiB     0  250ms\n"
        "\n"
        "NAME  COUNT\n"
        "w1        7\n");
}

TEST_CASE("long texts are shortened to the terminal before anything else is cut", "[ctl][render]") {
  const View view = view_of(with_text("a-name-that-is-much-too-long-to-fit"));
  CHECK(render_table(view, {.width = 20}) == "NAME           COUNT\na-name-that-~      7\n");
  SECTION("but not below what is needed to recognise them: then lines are cut") {
    CHECK(render_table(view, {.width = 12}) == "NAME      C~\na-name-~   ~\n");
  }
  SECTION("and never without a terminal") {
    CHECK(render_table(view, {}).find("a-name-that-is-much-too-long-to-fit") != std::string::npos);
  }
}

TEST_CASE("no line of a table is wider than the terminal", "[ctl][render]") {
  View view = view_of(pools());
  view.sections.push_back(with_text(std::string(300, 'x')));
  view.sections.back().layout = Layout::kRecord;
  for (size_t width = 1; width < 60; ++width) {
    const std::string text = render_table(view, {.width = width});
    size_t start = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
      CAPTURE(width, text.substr(start, end - start));
      CHECK(end - start <= width);
      start = end + 1;
    }
  }
}

TEST_CASE("colour marks states and trouble, and leaves alignment alone", "[ctl][render]") {
  const std::string text = render_table(view_of(pools()), {.colour = true});
  CHECK(text.find("\x1b[32mlive\x1b[0m") != std::string::npos);
  CHECK(text.find("\x1b[31mgone\x1b[0m") != std::string::npos);
  CHECK(text.find("  \x1b[31m12\x1b[0m") != std::string::npos);
  CHECK(text.find("\x1b[31m0") == std::string::npos);

  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      plain += text[i];
  }
  CHECK(plain == render_table(view_of(pools()), {}));
}

TEST_CASE("durations in tables are short and keep their sign", "[ctl][render]") {
  const struct {
    int64_t millis;
    std::string shown;
  } cases[] = {
      {0, "0ms"},           {999, "999ms"},
      {1'000, "1.0s"},      {59'400, "59s"},
      {-2'500, "-2.5s"},    {180'000, "3.0min"},
      {3'600'000, "60min"}, {86'400'000, "24h"},
      {864'000'000, "10d"}, {INT64_MIN, "-106751991167d"},
  };
  for (const auto& c : cases)
    CHECK(table_text({"age_ms", "AGE", Kind::kMillis}, c.millis) == c.shown);
}

TEST_CASE("a stream prints its header once and its columns only grow", "[ctl][render]") {
  StreamTable table;
  CHECK(table.append(with_text("a"), {}) == "NAME  COUNT\na         7\n");
  CHECK(table.append(with_text("longer-name"), {}) == "longer-name      7\n");
  CHECK(table.append(with_text("b"), {}) == "b                7\n");
}

TEST_CASE("a watched view carries its time in every form", "[ctl][render]") {
  View view = view_of(with_text("a"));
  view.taken_at = "2026-01-31T12:00:00.250Z";
  CHECK(render_table(view, {}) == "2026-01-31T12:00:00.250Z\nNAME  COUNT\na         7\n");
  CHECK(render_csv(view) == "time,name,count\n2026-01-31T12:00:00.250Z,a,7\n");
  CHECK(render_json(view, JsonForm::kOneLine) ==
        "{\"time\":\"2026-01-31T12:00:00.250Z\",\"names\":[{\"name\":\"a\",\"count\":7}]}\n");
}

TEST_CASE("a list says in JSON whether there is more", "[ctl][render]") {
  View view = view_of(with_text("a"));
  view.more = true;
  CHECK(render_json(view, JsonForm::kOneLine) ==
        "{\"names\":[{\"name\":\"a\",\"count\":7}],\"more\":true}\n");
}

}  // namespace berth::ctl
