// A scenario: a text file of commands to a directory, each with the answer that it must give. Reads
// like the story of a failure; a new case is a new file, with nothing to compile.
//
//   # Comments and blank lines are kept as they are.
//   > reserve e1 1 2
//   granted granted
//
// Names stand for ids: workers, pools and engines by the names that the script gives them, chunks
// by number. The words are listed in script.cc. After every command all invariants are checked.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/directory/world.h"

namespace berth {

class Script {
 public:
  // The answer as it stands in the file: one or more lines without the newline at the end.
  std::string run(const std::string& line);

 private:
  using Words = std::vector<std::string>;

  std::string worker(const Words& words);
  std::string replace_worker(const Words& words);
  std::string pool(const Words& words);
  std::string join(const Words& words);
  std::string reserve(const Words& words);
  std::string commit(const Words& words);
  std::string abort(const Words& words);
  std::string probe(const Words& words);
  std::string acquire(const Words& words);
  std::string release(const Words& words);
  std::string evict(const Words& words);
  std::string reclaimed(const Words& words);
  std::string fence(const Words& words);
  std::string wait(const Words& words);
  std::string reattach(const Words& words);
  std::string link_down(const Words& words);
  std::string restart();
  std::string usage(const Words& words);
  std::string jobs();

  // Runs a command and tells asks that it led to, or the reason of its refusal.
  std::string tell(const Command& command,
                   const std::function<std::string(const Outcome&)>& answer);
  std::string asks_text() const;
  World::Worker& worker_of(const std::string& engine);
  std::vector<ReplicaId> latest(const Words& words, size_t from) const;

  World world_;
  NamespaceId namespace_ = world_.open_namespace();
  std::map<std::string, World::Worker> workers_;
  std::map<std::string, PoolId> pools_;
  std::map<std::string, SessionId> engines_;
  std::map<std::string, std::string> worker_of_engine_;
  std::map<std::string, std::vector<LeaseId>> leases_;  // by name
  std::map<std::string, std::string> holder_of_lease_;
  std::map<int, std::vector<ReplicaId>> replicas_;  // by chunk, in the order granted
};

}  // namespace berth
