// Meeting the other workers of a host, with one of them played by hand on real sockets: what is
// passed and how, and what keeps a life lock.
#include "worker/local/neighbours.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "common/descriptor_passing.h"
#include "common/unix_socket.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth::worker {
namespace {

using berth::testing::TemporaryDirectory;

constexpr uint64_t kPage = 4096;

// w0. Its agent has no session, so it lets go of whatever it is offered.
struct Rig {
  Rig() {
    REQUIRE(ftruncate(memory.get(), kPage) == 0);
    host.set_perform([this](Action& action) {
      if (auto* drop = std::get_if<DropImport>(&action)) {
        offered = neighbours->find(drop->import) != nullptr;
        neighbours->perform(*drop);
        drops = drops + 1;
      }
    });
    NeighboursOptions options;
    options.directory = directory.path();
    options.worker_name = "w0";
    options.pool_descriptors = {memory.get()};
    neighbours = *Neighbours::start(std::move(options), host, *keeper);
  }
  void introduce(uint64_t session) {
    Introduce action{SessionId(session), std::string(16, 's')};
    neighbours->perform(action);
  }
  std::string pass_to_first_peer() {
    const std::string life_name = *keeper->create();
    PassExport action{PeerId(1), 0, {}};
    action.message.set_life_name(life_name);
    action.message.mutable_pool()->set_pool(5);
    neighbours->perform(action);
    return life_name;
  }
  std::string path(const std::string& name) { return directory.path() + "/" + name; }

  TemporaryDirectory directory;
  std::unique_ptr<LifeKeeper> keeper = *LifeKeeper::open(directory.path(), "w0");
  UniqueFd memory{memfd_create("pool", MFD_CLOEXEC)};
  std::atomic<bool> offered{false};
  std::atomic<int> drops{0};
  AgentHost host{AgentOptions{}};
  std::unique_ptr<Neighbours> neighbours;
};

std::string hello_bytes(uint64_t session) {
  v1::WorkerHello hello;
  hello.set_worker_name("w1");
  hello.set_session(session);
  hello.set_store_id(std::string(16, 's'));
  return hello.SerializeAsString();
}

}  // namespace

TEST_CASE("a pool is passed read-only, under a lock that lives as long as somebody holds it",
          "[local][sharing]") {
  Rig rig;
  const UniqueFd peer = *connect_seqpacket(rig.path("w0.share"));
  REQUIRE(set_socket_timeout(peer.get(), milliseconds(100)));
  REQUIRE(send_descriptors(peer.get(), hello_bytes(20), {}));
  // Before the hello was read there is nobody to pass to, and the lock is discarded.
  std::string life_name;
  Result<DescriptorMessage> message = refuse(Reason::kUnavailable, "nothing yet");
  while (!message) {
    life_name = rig.pass_to_first_peer();
    message = receive_descriptors(peer.get());
  }
  v1::SharedPool shared;
  REQUIRE(shared.ParseFromString(message->payload));
  CHECK(shared.pool().pool() == 5);
  CHECK(shared.life_name() == life_name);
  REQUIRE(message->descriptors.size() == 2);
  const int pool = message->descriptors[1].get();
  CHECK(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0) == MAP_FAILED);
  void* mapped = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, pool, 0);
  REQUIRE(mapped != MAP_FAILED);
  REQUIRE(pwrite(rig.memory.get(), "kv", 2, 0) == 2);
  CHECK(std::string(static_cast<const char*>(mapped), 2) == "kv");
  munmap(mapped, kPage);

  CHECK(*rig.keeper->test(life_name) == Life::kAlive);
  UniqueFd copy(dup(message->descriptors[0].get()));  // as an engine's
  message->descriptors.clear();
  CHECK(*rig.keeper->test(life_name) == Life::kAlive);
  copy.reset();
  // Whoever passed it lets go of its own copy when it has; the test's time limit ends a hang.
  while (*rig.keeper->test(life_name) != Life::kDead) std::this_thread::yield();
}

TEST_CASE("neighbours are found in the runtime directory, and what they pass can be let go",
          "[local][sharing]") {
  Rig rig;
  const UniqueFd listener = *listen_seqpacket(rig.path("w1.share"), 0660);
  rig.introduce(10);
  const UniqueFd accepted = *accept_connection(listener.get());
  const auto hello = receive_descriptors(accepted.get());
  REQUIRE(hello);
  v1::WorkerHello said;
  REQUIRE(said.ParseFromString(hello->payload));
  CHECK(said.worker_name() == "w0");
  CHECK(said.session() == 10);
  CHECK(said.store_id() == std::string(16, 's'));

  auto keeper = *LifeKeeper::open(rig.directory.path(), "w1");
  const std::string life_name = *keeper->create();
  {
    const auto lock = keeper->take(life_name);
    v1::SharedPool shared;
    shared.mutable_pool()->set_pool(7);
    shared.set_life_name(life_name);
    const std::vector<int> both{lock->descriptor(), rig.memory.get()};
    REQUIRE(send_descriptors(accepted.get(), shared.SerializeAsString(), both));
  }
  while (rig.drops == 0) std::this_thread::yield();
  CHECK(rig.offered);
  CHECK(*keeper->test(life_name) == Life::kDead);
}

TEST_CASE("under another session every connection is made anew", "[local][sharing]") {
  Rig rig;
  const UniqueFd listener = *listen_seqpacket(rig.path("w1.share"), 0660);
  rig.introduce(10);
  const UniqueFd first = *accept_connection(listener.get());
  REQUIRE(receive_descriptors(first.get()));
  rig.introduce(11);
  CHECK_FALSE(receive_descriptors(first.get()));  // closed
  const UniqueFd second = *accept_connection(listener.get());
  const auto hello = receive_descriptors(second.get());
  REQUIRE(hello);
  v1::WorkerHello said;
  REQUIRE(said.ParseFromString(hello->payload));
  CHECK(said.session() == 11);
  rig.introduce(0);
  CHECK_FALSE(receive_descriptors(second.get()));
}

TEST_CASE("a neighbour that came before the first session is sent away with the others",
          "[local][sharing]") {
  Rig rig;
  const UniqueFd peer = *connect_seqpacket(rig.path("w0.share"));
  REQUIRE(set_socket_timeout(peer.get(), milliseconds(100)));
  REQUIRE(send_descriptors(peer.get(), hello_bytes(20), {}));
  do rig.pass_to_first_peer();
  while (!receive_descriptors(peer.get()));
  REQUIRE(set_socket_timeout(peer.get(), seconds(60)));  // ends a test that hangs
  rig.introduce(0);
  char byte = 0;
  ssize_t received = 1;
  while (received > 0) received = recv(peer.get(), &byte, sizeof byte, 0);
  CHECK(received == 0);  // closed
}

}  // namespace berth::worker
