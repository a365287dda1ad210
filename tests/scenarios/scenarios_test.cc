// Runs every tests/scenarios/*.txt. With BERTH_UPDATE_SCENARIOS=1 the answers in the files are
// written anew; look at the difference before you believe it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scenarios/script.h"

namespace berth {
namespace {

// The file as it would be if every answer were the one that is given now.
std::string replay(std::istream& in) {
  Script script;
  std::string out;
  std::string line;
  bool in_answer = false;
  while (std::getline(in, line)) {
    if (line.starts_with("> ")) {
      INFO(line);
      out += line + "\n" + script.run(line.substr(2)) + "\n";
      in_answer = true;
    } else if (line.empty() || line.starts_with("#")) {
      out += line + "\n";
      in_answer = false;
    } else {
      INFO("an answer stands below the command that it belongs to: " << line);
      REQUIRE(in_answer);
    }
  }
  return out;
}

TEST_CASE("every scenario gives the answers that stand in its file", "[scenarios]") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_SOURCE_DIR "/tests/scenarios"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 8);
  for (const std::filesystem::path& file : files) {
    INFO(file.filename());
    std::ifstream in(file);
    std::stringstream wanted;
    wanted << in.rdbuf();
    const std::string given = replay(wanted);
    if (std::getenv("BERTH_UPDATE_SCENARIOS")) {
      std::ofstream(file) << given;
      continue;
    }
    CHECK(given == wanted.str());
  }
}

}  // namespace
}  // namespace berth
