// Pins: what keeps a chunk from being chosen, and what does not.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Pinned : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 10 * kPage);
  SessionId client = join(worker);

  std::string pin(const std::vector<int>& chunks, PinKind kind, Duration ttl = {}) {
    return text(must<PerItem>(PinChunks{"llama", digests_of(chunks), kind, ttl}));
  }
  std::string unpin(const std::vector<int>& chunks) {
    return text(must<PerItem>(UnpinChunks{"llama", digests_of(chunks)}));
  }
  std::string evict(const std::vector<int>& chunks) {
    return text(must<PerItem>(EvictChunks{"llama", digests_of(chunks)}));
  }
  static std::vector<Digest> digests_of(const std::vector<int>& chunks) {
    std::vector<Digest> digests;
    for (const int chunk : chunks) digests.push_back(digest(chunk));
    return digests;
  }
  static std::string text(const PerItem& answer) {
    std::string codes;
    for (const uint8_t code : answer.done) codes += static_cast<char>('0' + code);
    return codes;
  }
};

TEST_CASE_METHOD(Pinned, "a pin keeps what is READY, and says of the rest that it is not there",
                 "[directory][pin]") {
  store(worker, client, ns, {1, 2});
  reserve(worker, client, ns, {3});
  CHECK(pin({1, 3, 4}, PinKind::kHard) == "100");
  CHECK(needs_sync);
  CHECK(evict({1, 2}) == "21");
  CHECK(probe_chunks(client, ns, {1}).classes.size() == 1);
  CHECK(unpin({1, 2}) == "10");
  CHECK(evict({1}) == "1");
}

TEST_CASE_METHOD(Pinned, "hard pins of a pool stay under its low watermark", "[directory][pin]") {
  store(worker, client, ns, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(pin({1, 2, 3, 4, 5, 6, 7, 8, 9}, PinKind::kHard) == "111111112");
  CHECK(usage(pool).hard_pin_bytes == int64_t(8 * kPage));
  CHECK(pin({9}, PinKind::kSoft) == "1");  // these have no such bound
  CHECK(usage(pool).pins == 9);
  CHECK(pin({1}, PinKind::kHard) == "1");  // a repeat takes no more room
}

TEST_CASE_METHOD(Pinned, "pins have a bound", "[directory][pin]") {
  config.pins_max = 2;
  store(worker, client, ns, {1, 2, 3});
  CHECK(pin({1, 2}, PinKind::kSoft) == "11");
  CHECK(pin({3}, PinKind::kSoft) == "2");
  CHECK(pin({1}, PinKind::kHard) == "1");  // another kind for one that is there
}

TEST_CASE_METHOD(Pinned, "a soft pin ends with its time and protects until then",
                 "[directory][pin]") {
  store(worker, client, ns, {1});
  CHECK(pin({1}, PinKind::kSoft, seconds(10)) == "1");
  now = now + seconds(10);
  CHECK(evict({1}) == "1");  // over, although no tick has looked yet
  store(worker, client, ns, {2});
  pin({2}, PinKind::kSoft, seconds(10));
  now = now + seconds(11);
  must<Ticked>(Tick{});
  CHECK(directory.pins().empty());
}

TEST_CASE_METHOD(Pinned, "all copies of a chunk are pinned, or none", "[directory][pin]") {
  const NamespaceId wide = open_namespace("wide", 2);
  Reserve both = reserve_command(worker, client, wide, {1, 1});
  both.keys[1].shard = 1;
  const Reserved reserved = must<Reserved>(both);
  must<Committed>(
      commit_command(worker, client, {reserved.first, ReplicaId(reserved.first.value() + 1)}));
  config.pins_max = 1;
  CHECK(text(must<PerItem>(PinChunks{"wide", {digest(1)}, PinKind::kSoft, {}})) == "2");
  CHECK(directory.pins().empty());
  config.pins_max = 2;
  CHECK(text(must<PerItem>(PinChunks{"wide", {digest(1)}, PinKind::kSoft, {}})) == "1");
  CHECK(directory.pins().size() == 2);
}

TEST_CASE_METHOD(Pinned, "a pin survives a restart and goes with its copy", "[directory][pin]") {
  const std::vector<ReplicaId> replicas = store(worker, client, ns, {1, 2});
  pin({1, 2}, PinKind::kHard);
  restart();
  CHECK(directory.pins().size() == 2);
  must<JobStarted>(EvictNamespace{"llama"});  // goes before pins
  drain_jobs();
  CHECK(directory.pins().empty());
  CHECK(directory.find<Replica>(replicas[0])->state == ReplicaState::kRetiring);
}

TEST_CASE_METHOD(Pinned, "what makes no sense is refused by name", "[directory][pin]") {
  CHECK(refused(PinChunks{"nobody", {digest(1)}, PinKind::kHard, {}}) == Reason::kUnknownNamespace);
  CHECK(refused(PinChunks{"llama", {}, PinKind::kHard, {}}) == Reason::kInvalidArgument);
  CHECK(refused(PinChunks{"llama", {digest(1)}, PinKind::kSoft, config.pin_ttl_max + seconds(1)}) ==
        Reason::kInvalidArgument);
}

}  // namespace
}  // namespace berth
