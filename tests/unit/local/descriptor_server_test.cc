// Descriptors and life locks between real processes.
#include "worker/local/descriptor_server.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <filesystem>
#include <set>

#include "common/descriptor_passing.h"
#include "common/file_lock.h"
#include "common/unix_socket.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth::worker {
namespace {

using berth::testing::TemporaryDirectory;

const std::string kTicket(16, 'k');

// Who was suspected, and a way to wait for it without a clock.
class Suspects {
 public:
  void add(SessionId client) {
    const std::lock_guard lock(mutex_);
    seen_.insert(client);
    changed_.notify_all();
  }
  void wait_for(SessionId client) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return seen_.count(client) > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<SessionId> seen_;
};

// An engine process that does one thing and reports one byte; it was forked before any thread.
// `go` can be read again, by whoever is left, to wait for a second go().
class EngineProcess {
 public:
  using Work = std::function<void(int go, int report)>;
  explicit EngineProcess(const Work& work) {
    REQUIRE(pipe(go_) == 0);
    REQUIRE(pipe(report_) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      close(report_[1]);  // so that the end of the last writer shows
      report_[1] = -1;
      return;
    }
    close(go_[1]);
    char byte = 0;
    if (read(go_[0], &byte, 1) == 1) work(go_[0], report_[1]);
    _exit(0);
  }
  ~EngineProcess() {
    if (pid_ > 0) end(SIGKILL);
    for (const int fd : {go_[0], go_[1], report_[0], report_[1]}) {
      if (fd >= 0) close(fd);
    }
  }
  void go() { REQUIRE(write(go_[1], "g", 1) == 1); }
  char report() {
    char byte = 0;
    REQUIRE(read(report_[0], &byte, 1) == 1);
    return byte;
  }
  // Returns once every process that inherited the pipe is gone.
  void wait_for_last() {
    char byte = 0;
    while (read(report_[0], &byte, 1) > 0) {
    }
  }
  void end(int signal) {
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int go_[2] = {-1, -1};
  int report_[2] = {-1, -1};
};

// In the engine: fetches what belongs to the ticket. Empty: refused.
std::vector<UniqueFd> fetch(const std::string& path, const std::string& ticket,
                            UniqueFd* connection) {
  Result<UniqueFd> socket = connect_seqpacket(path);
  if (!socket || !send_descriptors(socket->get(), ticket, {})) return {};
  Result<DescriptorMessage> message = receive_descriptors(socket->get());
  *connection = std::move(*socket);
  return message ? std::move(message->descriptors) : std::vector<UniqueFd>();
}

struct Rig {
  TemporaryDirectory directory;
  std::string path = directory.path() + "/w0.sock.fd";
  std::unique_ptr<LifeKeeper> keeper = *LifeKeeper::open(directory.path(), "w0");
  Suspects suspects;
  UniqueFd memory{memfd_create("pool", MFD_CLOEXEC)};
  std::unique_ptr<DescriptorServer> server;
  std::string life_name;

  // After the engines were forked.
  void start() {
    REQUIRE(ftruncate(memory.get(), 4096) == 0);
    server = *DescriptorServer::start(path, *keeper, 4,
                                      [this](SessionId client) { suspects.add(client); });
    life_name = *keeper->create();
    server->expect(kTicket, {SessionId(7), life_name, {memory.get()}});
  }
  Life life() { return *keeper->test(life_name); }
};

}  // namespace

TEST_CASE("a ticket brings the life lock and the pools, once", "[local]") {
  Rig rig;
  const std::string path = rig.path;
  EngineProcess engine([path](int, int report) {
    UniqueFd connection;
    const std::vector<UniqueFd> received = fetch(path, kTicket, &connection);
    bool good = received.size() == 2 && pwrite(received[1].get(), "KV", 2, 100) == 2;
    UniqueFd second;
    good = good && fetch(path, kTicket, &second).empty();
    good = good && fetch(path, std::string(16, 'x'), &second).empty();
    if (write(report, good ? "y" : "n", 1) != 1) _exit(1);
    pause();
  });
  rig.start();
  CHECK(rig.life() == Life::kAlive);  // ours, not yet passed
  engine.go();
  CHECK(engine.report() == 'y');
  char bytes[2] = {};
  REQUIRE(pread(rig.memory.get(), bytes, 2, 100) == 2);
  CHECK(std::string(bytes, 2) == "KV");
  CHECK(rig.life() == Life::kAlive);  // the engine's now
  CHECK_FALSE(rig.keeper->take(rig.life_name).has_value());
}

TEST_CASE("kill -9 of an engine is noticed, and its free lock proves it", "[local]") {
  Rig rig;
  const std::string path = rig.path;
  EngineProcess engine([path](int, int report) {
    UniqueFd connection;
    const std::vector<UniqueFd> received = fetch(path, kTicket, &connection);
    if (write(report, received.size() == 2 ? "y" : "n", 1) != 1) _exit(1);
    pause();
  });
  rig.start();
  engine.go();
  REQUIRE(engine.report() == 'y');
  engine.end(SIGKILL);
  rig.suspects.wait_for(SessionId(7));
  CHECK(rig.life() == Life::kDead);
  CHECK_FALSE(std::filesystem::exists(rig.directory.path() + "/" + rig.life_name));
}

TEST_CASE("the life lock outlives the process that forked, until the last fork is gone",
          "[local]") {
  Rig rig;
  const std::string path = rig.path;
  EngineProcess engine([path](int go, int report) {
    UniqueFd connection;
    const std::vector<UniqueFd> received = fetch(path, kTicket, &connection);
    if (fork() != 0) pause();
    connection.reset();  // so that the worker notices the parent's death at once
    char byte = 0;
    if (write(report, received.size() == 2 ? "f" : "n", 1) != 1) _exit(1);
    if (read(go, &byte, 1) != 1) _exit(1);
  });
  rig.start();
  engine.go();
  REQUIRE(engine.report() == 'f');
  engine.end(SIGKILL);
  rig.suspects.wait_for(SessionId(7));
  CHECK(rig.life() == Life::kAlive);
  engine.go();
  engine.wait_for_last();
  CHECK(rig.life() == Life::kDead);
}

TEST_CASE("a lock that is discarded before it was passed proves its client gone", "[local]") {
  Rig rig;
  rig.start();
  rig.keeper->discard(rig.life_name);
  CHECK(rig.life() == Life::kDead);
  CHECK_FALSE(std::filesystem::exists(rig.directory.path() + "/" + rig.life_name));
}

TEST_CASE("a start removes the client files of the dead and leaves everything else", "[local]") {
  TemporaryDirectory directory;
  std::string dead;
  std::string held;
  auto other = *LifeKeeper::open(directory.path(), "w1");
  const std::string of_other = *other->create();
  other->take(of_other);  // free, but not this worker's
  auto predecessor = *LifeKeeper::open(directory.path(), "w0");
  dead = *predecessor->create();
  held = *predecessor->create();
  predecessor->take(dead);  // drops the lock, keeps the file
  const auto own = LifeLock::take(predecessor->directory(), "w0.life");
  auto keeper = *LifeKeeper::open(directory.path(), "w0");
  CHECK(keeper->remove_leftovers(directory.path()) == 1);
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/" + dead));
  CHECK(std::filesystem::exists(directory.path() + "/" + held));
  CHECK(std::filesystem::exists(directory.path() + "/" + of_other));
  CHECK(std::filesystem::exists(directory.path() + "/w0.life"));
}

TEST_CASE("a socket that somebody serves is not taken over, a stale one is", "[local]") {
  TemporaryDirectory directory;
  auto keeper = *LifeKeeper::open(directory.path(), "w0");
  const std::string path = directory.path() + "/w0.sock.fd";
  const auto ignore = [](SessionId) {};
  {
    const auto stale = listen_seqpacket(path, 0660);  // its file stays when it closes
    REQUIRE(stale);
    const auto refused = DescriptorServer::start(path, *keeper, 4, ignore);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().reason == Reason::kNameInUse);
  }
  CHECK(DescriptorServer::start(path, *keeper, 4, ignore).has_value());
}

}  // namespace berth::worker
