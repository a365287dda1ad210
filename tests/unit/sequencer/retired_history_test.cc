// The memory of copies that left: what enters it, in which order it answers, and that it is
// bounded.
#include "server/sequencer/retired_history.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>

namespace berth {
namespace {

constexpr NamespaceId kSpace{1};
constexpr PoolId kPool{77};

Digest digest(int chunk) {
  Digest digest;
  digest.bytes[0] = static_cast<uint8_t>(chunk);
  digest.bytes[1] = static_cast<uint8_t>(chunk >> 8);
  return digest;
}

Replica copy(uint64_t id, int chunk, ReplicaState state, Why why = Why::kNone) {
  Replica replica;
  replica.id = ReplicaId(id);
  replica.key = {digest(chunk), 1, 0, 0};
  replica.pool = kPool;
  replica.size_bytes = 4096;
  replica.state = state;
  replica.why = why;
  return replica;
}

Mutation forgotten(uint64_t id) { return {RecordTraits<Replica>::key(ReplicaId(id)), Forgotten{}}; }

// A directory with a pool, and the history beside it as the sequencer has them.
struct Beside {
  explicit Beside(size_t entries_max) : history(entries_max) {
    Pool pool;
    pool.id = kPool;
    pool.spec.page_bytes = 4096;
    directory.install(std::vector<Mutation>{put_of(pool)});
  }
  void install(const std::vector<Mutation>& mutations, int64_t millis = 0) {
    history.before_install(directory, mutations, Time{millis});
    directory.install(mutations);
  }
  std::string told(int chunk) const {
    std::string text;
    for (const RetiredCopy& copy : history.of_chunk(kSpace, digest(chunk), 100))
      text += std::to_string(copy.replica.value()) + ":" + std::string(name_of(copy.why)) + "@" +
              std::to_string(copy.when.millis) + " ";
    return text;
  }

  Directory directory;
  RetiredHistory history;
};

}  // namespace

TEST_CASE("a READY copy that retires or is forgotten is remembered with its reason, newest first",
          "[sequencer][history]") {
  Beside beside(10);
  beside.install({put_of(copy(1, 5, ReplicaState::kReady)),
                  put_of(copy(2, 5, ReplicaState::kReady)),
                  put_of(copy(3, 6, ReplicaState::kReady))});
  CHECK(beside.history.size() == 0);
  beside.install({put_of(copy(1, 5, ReplicaState::kRetiring, Why::kMadeRoom))}, 100);
  beside.install({forgotten(2), forgotten(3)}, 200);
  CHECK(beside.told(5) == "2:@200 1:made_room@100 ");
  CHECK(beside.told(6) == "3:@200 ");
  CHECK(beside.told(7).empty());
  CHECK(beside.history.of_chunk(kSpace, digest(5), 1).size() == 1);
  CHECK(beside.history.of_chunk(NamespaceId(2), digest(5), 10).empty());
}

TEST_CASE("a copy is remembered once, and what was never readable is not", "[sequencer][history]") {
  Beside beside(10);
  Replica writing = copy(4, 5, ReplicaState::kReserved);
  writing.in_reservation = true;
  beside.install({put_of(copy(1, 5, ReplicaState::kReady)), put_of(writing)});
  beside.install({put_of(copy(1, 5, ReplicaState::kRetiring, Why::kEvicted))}, 1);
  beside.install({forgotten(1)}, 2);  // acknowledged
  beside.install({put_of(copy(4, 5, ReplicaState::kRetiring, Why::kWriterAborted))}, 3);
  beside.install({forgotten(4)}, 4);
  beside.install({forgotten(9)}, 5);  // unknown
  CHECK(beside.told(5) == "1:evicted@1 ");
}

TEST_CASE("a copy that was set aside is remembered when it leaves", "[sequencer][history]") {
  Beside beside(10);
  beside.install({put_of(copy(1, 5, ReplicaState::kReady))});
  beside.install({put_of(copy(1, 5, ReplicaState::kQuarantined, Why::kLedgerMismatch))}, 1);
  CHECK(beside.told(5).empty());  // it is still there
  beside.install({put_of(copy(1, 5, ReplicaState::kRetiring, Why::kEvicted))}, 2);
  CHECK(beside.told(5) == "1:evicted@2 ");
}

TEST_CASE("the memory keeps the newest ones and never more than its bound",
          "[sequencer][history]") {
  Beside beside(4);
  for (uint64_t id = 1; id <= 11; ++id) {
    beside.install({put_of(copy(id, 5, ReplicaState::kReady))});
    beside.install({forgotten(id)}, static_cast<int64_t>(id));
    CHECK(beside.history.size() == std::min<uint64_t>(id, 4));
  }
  CHECK(beside.told(5) == "11:@11 10:@10 9:@9 8:@8 ");
  CHECK(beside.history.memory_bytes() == 4 * sizeof(RetiredCopy));

  Beside off(0);
  off.install({put_of(copy(1, 5, ReplicaState::kReady))});
  off.install({forgotten(1)});
  CHECK(off.history.size() == 0);
}

TEST_CASE("it is read while the writer adds to it", "[sequencer][history]") {
  Beside beside(64);
  std::thread reader([&] {
    while (beside.history.size() < 64) {
      const auto found = beside.history.of_chunk(kSpace, digest(5), 8);
      for (size_t i = 1; i < found.size(); ++i)
        if (!(found[i].when < found[i - 1].when)) std::abort();
    }
  });
  for (uint64_t id = 1; id <= 500; ++id) {
    beside.install({put_of(copy(id, 5, ReplicaState::kReady))});
    beside.install({forgotten(id)}, static_cast<int64_t>(id));
  }
  reader.join();
  CHECK(beside.history.size() == 64);
}

}  // namespace berth
