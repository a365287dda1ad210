// A client that has joined a fake worker and opened a namespace, with its socket's directory. A
// test drives both ends from its own thread; waits are for the library's threads, without a
// time-out.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/client/fake_worker.h"
#include "tests/unit/common/temporary_directory.h"
#include "worker/client/client.h"

namespace berth::client::testing {

inline constexpr uint64_t kOneSize[] = {kPageBytes};

// Deadlines are generous: only a test about a deadline shortens the one it is about.
inline ClientOptions patient_options(const std::string& socket) {
  ClientOptions options;
  options.socket = socket;
  options.engine_id = "engine-0";
  options.probe_deadline = options.load_deadline = options.store_deadline = seconds(60);
  options.finish_deadline = options.control_deadline = options.join_deadline = seconds(60);
  options.rejoin_after_min = options.rejoin_after_max = milliseconds(1);
  return options;
}

struct Engine {
  explicit Engine(void (*adjust)(ClientOptions&) = nullptr) {
    ClientOptions options = patient_options(socket);
    if (adjust) adjust(options);
    auto joined = Client::join(options);
    REQUIRE(joined);
    client = std::move(*joined);
    NamespaceSpec spec;
    spec.name = "tenant";
    spec.model = "model@1";
    spec.dtype = "bf16";
    spec.chunk_tokens = 512;
    spec.digest_bytes = 16;
    auto opened = client->open_namespace(spec);
    REQUIRE(opened);
    name_space = *opened;
  }

  // A worker process dies and another takes its place.
  void replace_worker() {
    const size_t joins = client->stats().joins;
    worker.reset();
    worker = std::make_unique<FakeWorker>(socket, ++incarnation);
    await_stats([&](const ClientStats& stats) { return stats.joins > joins && stats.joined; });
  }

  template <class Condition>
  void await_stats(Condition condition) const {
    while (!condition(client->stats())) std::this_thread::yield();
  }

  std::vector<std::byte> chain(size_t chunks) const {
    std::vector<std::byte> digests(chunks * 16);
    for (size_t i = 0; i < digests.size(); ++i) digests[i] = static_cast<std::byte>(i);
    return digests;
  }
  Result<PendingStore> begin(size_t chunks) {
    const std::vector<std::byte> digests = chain(chunks);
    return client->begin_store({.name_space = name_space, .digests = digests, .sizes = kOneSize});
  }
  Result<LoadHandle> load(size_t chunks) {
    const std::vector<std::byte> digests = chain(chunks);
    return client->load({.name_space = name_space, .digests = digests});
  }
  Result<Probe> probe(size_t chunks) {
    const std::vector<std::byte> digests = chain(chunks);
    return client->probe({.name_space = name_space, .digests = digests});
  }

  berth::testing::TemporaryDirectory directory;
  std::string socket = directory.path() + "/w.sock";
  uint64_t incarnation = 1;
  std::unique_ptr<FakeWorker> worker = std::make_unique<FakeWorker>(socket);
  std::unique_ptr<Client> client;
  Namespace name_space;
};

}  // namespace berth::client::testing
