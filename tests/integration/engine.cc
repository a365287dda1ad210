#include "tests/integration/engine.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <sstream>

namespace berth::testing {

std::string Reply::reason() const {
  std::istringstream words(text);
  std::string word;
  words >> word >> word;
  return word;
}

uint64_t Reply::number(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? 0 : std::stoull(found->second);
}

std::string Reply::word(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

Engine::Engine(const std::string& socket, const std::string& engine_id, const std::string& log,
               Enter enter)
    : process_({.arguments = {program("berth-test-engine")}, .log = log, .stdio = Stdio::kPiped}) {
  if (enter == Enter::kNot) return;
  must("join " + socket + " " + engine_id);
  must("namespace kv");
}

// The children's parent may be dead, so nobody here can wait for them; a signal is enough.
Engine::~Engine() {
  for (const pid_t pid : holders_) kill(pid, SIGKILL);
}

Reply Engine::run(const std::string& command, Duration bound) {
  begin(command);
  return answer(bound);
}

Reply Engine::must(const std::string& command, Duration bound) {
  Reply reply = run(command, bound);
  INFO(command << " -> " << reply.text);
  REQUIRE(reply.ok());
  return reply;
}

Reply Engine::answer(Duration bound) {
  const auto reply = try_answer(bound);
  INFO("engine log: " << process_.log());
  REQUIRE(reply);
  return *reply;
}

std::optional<Reply> Engine::try_answer(Duration bound) {
  const auto line = process_.read_line(bound);
  if (!line) return std::nullopt;
  Reply reply{*line, {}};
  std::istringstream words(*line);
  for (std::string word; words >> word;)
    if (const size_t at = word.find('='); at != std::string::npos)
      reply.values[word.substr(0, at)] = word.substr(at + 1);
  return reply;
}

pid_t Engine::fork_holder() {
  const auto pid = static_cast<pid_t>(must("fork").number("pid"));
  REQUIRE(pid > 0);
  holders_.push_back(pid);
  return pid;
}

void Engine::kill_holder(pid_t pid) {
  REQUIRE(kill(pid, SIGKILL) == 0);
  std::erase(holders_, pid);
}

}  // namespace berth::testing
