// A directory and a hand on its clock. Every command is its own batch; after each, every invariant
// is checked and the directory that recovery would build is compared with the one that lives.
#pragma once

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "server/directory/apply.h"
#include "server/directory/invariants.h"
#include "server/directory/queries.h"
#include "server/policy/evictor.h"

namespace berth {

struct World {
  Directory directory;
  DirectoryConfig config;
  Time now{1000};
  std::vector<Ask> asks;      // of the last command
  std::vector<Event> events;  // of the last command
  bool needs_sync = false;
  policy::Evictor* evictor = nullptr;  // told of every change, if there is one

  World();

  Result<Outcome> run(const Command& command);
  template <class T, class C>
  T must(const C& command) {
    Result<Outcome> outcome = run(command);
    INFO((outcome ? std::string("ok") : outcome.error().message));
    REQUIRE(outcome.has_value());
    return std::get<T>(*outcome);
  }
  Reason refused(const Command& command) {
    const Result<Outcome> outcome = run(command);
    REQUIRE_FALSE(outcome.has_value());
    return outcome.error().reason;
  }

  // ---- Things that most tests stand on ----
  NamespaceId open_namespace(const std::string& name = "llama", uint32_t shards = 1,
                             uint32_t parts = 1);
  struct Worker {
    SessionId session;
    Incarnation incarnation = 0;
    Caller caller() const { return {session, incarnation}; }
  };
  OpenWorker worker_command(const std::string& name, const std::string& node = "host-a") const;
  // By a process that took the life lock of the one before it.
  OpenWorker successor_command(const std::string& name) const;
  // Opened, re-attached with an empty ledger, Link up.
  Worker open_worker(const std::string& name = "w0", const std::string& node = "host-a");
  // Re-attach with these rows of one pool's ledger, up to and with the Link. Verdicts in row order.
  std::vector<LedgerVerdict> reattach(Worker& worker, PoolId pool = PoolId(),
                                      std::vector<LedgerRow> rows = {},
                                      std::vector<HeldLease> leases = {},
                                      std::vector<SessionId> clients = {});
  PoolId open_pool(const Worker& worker, uint64_t capacity = 1 << 20, Scope scope = Scope::kHost,
                   const std::string& name = "cpu");
  SessionId join(const Worker& worker, const std::string& engine = "engine-1");
  // The engine of `client` joins again, perhaps through another process.
  OpenClient resume_command(const Worker& through, SessionId client, const std::string& life_name);

  Reserve reserve_command(const Worker& worker, SessionId client, NamespaceId ns,
                          const std::vector<int>& chunks);
  Reserved reserve(const Worker& worker, SessionId client, NamespaceId ns,
                   const std::vector<int>& chunks);
  Commit commit_command(const Worker& worker, SessionId client,
                        const std::vector<ReplicaId>& replicas);
  // Reserved and committed; offsets are taken from a simple bump allocator.
  std::vector<ReplicaId> store(const Worker& worker, SessionId client, NamespaceId ns,
                               const std::vector<int>& chunks);
  Acquire acquire_command(const Worker& worker, SessionId client, NamespaceId ns,
                          const std::vector<int>& chunks);
  Acquired acquire(const Worker& worker, SessionId client, NamespaceId ns,
                   const std::vector<int>& chunks);
  ProbeAnswer probe_chunks(SessionId client, NamespaceId ns, const std::vector<int>& chunks) const;
  void drain_jobs();
  void restart();  // as after kill -9: what is durable, installed anew, under a raised epoch
  // As after a power cut: what was durable then.
  std::vector<Mutation> durable_records() const;
  void restart_from(const std::vector<Mutation>& records);

  const Replica& replica(ReplicaId id) const;
  PoolUsage usage(PoolId id) const { return directory.find_pool(id)->usage; }
  bool asked(Ask::Kind kind) const;

  static Digest digest(int chunk);
  static LedgerRow row(ReplicaId id, int chunk, uint64_t offset, LedgerState state);
  static constexpr uint64_t kPage = 4096;

  OperationNumber next_operation = 1;
  uint64_t next_offset = 0;
  uint64_t next_token = 100;

 private:
  Token fresh_token() { return {7, ++next_token}; }
};

std::string codes_text(const std::vector<uint8_t>& codes);

}  // namespace berth
