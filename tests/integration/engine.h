// An engine in a process of its own (berth-test-engine), so that a test can stop it, kill it or let
// it fork between any two steps. Each command is one line; see engine_main.cc for what there is.
//
//   Engine writer(cluster.worker(0), "engine-a");       // joined, namespace "kv" open
//   CHECK(writer.run("store 1 0 8 65536").number("committed") == 8);
//   writer.process().kill_hard();
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/process.h"

namespace berth::testing {

// "ok name=value ..." taken apart.
struct Reply {
  std::string text;
  std::map<std::string, std::string> values;

  bool ok() const { return text.starts_with("ok"); }
  // The second word of "error REASON MESSAGE".
  std::string reason() const;
  // Zero for what is not there: a code that no item had.
  uint64_t number(const std::string& name) const;
  std::string word(const std::string& name) const;
};

enum class Enter : uint8_t { kJoined, kNot };

class Engine {
 public:
  // `socket` is the worker's; `log` where the engine's own complaints go.
  Engine(const std::string& socket, const std::string& engine_id, const std::string& log,
         Enter enter = Enter::kJoined);
  ~Engine();

  // Sends a command and waits for its answer; one that does not come fails the test.
  Reply run(const std::string& command, Duration bound = kSoon);
  // Runs it and demands "ok".
  Reply must(const std::string& command, Duration bound = kSoon);
  // In two steps, for what goes on meanwhile.
  void begin(const std::string& command) { process_.write_line(command); }
  Reply answer(Duration bound = kSoon);
  // Nothing when there is none within `bound`.
  std::optional<Reply> try_answer(Duration bound);

  // A child of the engine that holds what it inherited; killed with the object at the latest.
  pid_t fork_holder();
  void kill_holder(pid_t pid);

  Process& process() { return process_; }

 private:
  Process process_;
  std::vector<pid_t> holders_;
};

}  // namespace berth::testing
