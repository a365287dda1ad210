// A member of the fleet within this process, for whoever drives berthd's core without its
// protocol: a worker with one pool, one client and a namespace of its own, and the commands that
// they send. Object n has the digest that every part of the bench gives it (objects.h).
//
// How a command runs is the driver's: decide and install, with or without a store, or through the
// sequencer. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/directory/commands.h"

namespace berth::bench {

// Ends the program with the reason when a command is refused: a figure of refusals means nothing.
using RunCommand = std::function<Outcome(Command)>;

struct CoreMemberSpec {
  std::string name = "bench";
  uint64_t number = 1;  // makes its tokens and its digests its own; from 1
  uint64_t pool_bytes = uint64_t{1} << 44;
};

class CoreMember {
 public:
  static constexpr uint64_t kFillBatch = 512;

  CoreMember(RunCommand run, const CoreMemberSpec& spec);

  const Caller& worker() const { return worker_; }
  SessionId client() const { return client_; }
  NamespaceId namespace_id() const { return namespace_; }
  PoolId pool() const { return pool_; }

  std::vector<Digest> chain(uint64_t first, uint64_t count) const;
  // Each takes the client's next operation number.
  Reserve reserve(uint64_t first, uint64_t count);
  Commit commit(const Reserved& reserved);  // at pages that were never used
  Acquire acquire(uint64_t first, uint64_t count);
  Release release(const Acquired& acquired) const;

  // Reserve, commit.
  std::vector<ReplicaId> store(uint64_t first, uint64_t count);
  void fill(uint64_t objects, uint64_t batch = kFillBatch);
  // What was stored leaves, and its owner gives the pages back.
  void take_away(const std::vector<ReplicaId>& replicas);
  // A heartbeat with which the server may forget the answers so far; only every so often, as real
  // workers send it.
  void forget_answers();

  template <class Expected>
  Expected run(Command command) {
    return std::get<Expected>(run_(std::move(command)));
  }

 private:
  const RunCommand run_;
  const uint64_t number_;
  Caller worker_;
  PoolId pool_;
  SessionId client_;
  NamespaceId namespace_;
  OperationNumber operation_ = 0;
  OperationNumber operation_told_ = 0;
  uint64_t pages_ = 0;
};

}  // namespace berth::bench
