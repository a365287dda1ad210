// Life locks: alive while anybody has the descriptor, dead as soon as nobody has.
#include "common/life_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/descriptor_passing.h"
#include "common/file_lock.h"
#include "common/unix_socket.h"
#include "tests/unit/common/child_process.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

struct RuntimeDirectory {
  testing::TemporaryDirectory directory;
  UniqueFd fd = open_directory(directory.path()).value();

  LifeLock take(const std::string& name) {
    return std::move(LifeLock::take(fd.get(), name)->value());
  }
  bool is_busy(const std::string& name) {
    return !LifeLock::take(fd.get(), name).value().has_value();
  }
  Life test(const std::string& name) {
    return test_life(fd.get(), name, ProvenDead::kKeepFile).value();
  }
  bool has(const std::string& name) {
    return std::filesystem::exists(directory.path() + "/" + name);
  }
};

}  // namespace

TEST_CASE("a life lock is held once, and free again when its holder drops it",
          "[common][life_lock]") {
  RuntimeDirectory run;
  {
    const LifeLock lock = run.take("w0.life");
    CHECK(run.is_busy("w0.life"));
    CHECK(run.test("w0.life") == Life::kAlive);
    CHECK(run.test("w1.life") == Life::kDead);
  }
  CHECK(run.test("w0.life") == Life::kDead);
  CHECK_FALSE(run.is_busy("w0.life"));
}

TEST_CASE("kill -9 of the holder frees its life lock", "[common][life_lock]") {
  RuntimeDirectory run;
  testing::Gate taken;
  testing::ChildProcess holder([&] {
    const auto lock = LifeLock::take(run.fd.get(), "w0.life");
    if (lock && *lock) taken.open();
    pause();
  });
  taken.wait();
  CHECK(run.is_busy("w0.life"));
  CHECK(run.test("w0.life") == Life::kAlive);
  holder.kill_hard();
  CHECK(run.test("w0.life") == Life::kDead);
  CHECK_FALSE(run.is_busy("w0.life"));
}

TEST_CASE("a fork keeps the life lock of a killed parent until it dies too",
          "[common][life_lock]") {
  RuntimeDirectory run;
  LifeLock lock = run.take("w0-c7.life");
  testing::ChildProcess first([] { pause(); });
  testing::ChildProcess second([] { pause(); });
  lock.release().reset();
  CHECK(run.test("w0-c7.life") == Life::kAlive);
  first.kill_hard();
  CHECK(run.test("w0-c7.life") == Life::kAlive);
  second.kill_hard();
  CHECK(run.test("w0-c7.life") == Life::kDead);
}

TEST_CASE("a descriptor that was passed on keeps the lock until the receiver dies",
          "[common][life_lock]") {
  RuntimeDirectory run;
  auto [ours, theirs] = socket_pair_seqpacket().value();
  testing::Gate received;
  testing::ChildProcess client([&, &theirs = theirs] {
    const auto message = receive_descriptors(theirs.get());
    if (message && message->descriptors.size() == 1) received.open();
    pause();
  });
  {
    const LifeLock lock = run.take("w0-c7.life");
    const int descriptor = lock.descriptor();
    REQUIRE(send_descriptors(ours.get(), "life", {&descriptor, 1}).has_value());
  }
  received.wait();
  CHECK(run.test("w0-c7.life") == Life::kAlive);
  client.kill_hard();
  CHECK(run.test("w0-c7.life") == Life::kDead);
}

TEST_CASE("a lock on its way in a socket already counts as held", "[common][life_lock]") {
  RuntimeDirectory run;
  auto [ours, theirs] = socket_pair_seqpacket().value();
  {
    const LifeLock lock = run.take("w0-c7.life");
    const int descriptor = lock.descriptor();
    REQUIRE(send_descriptors(ours.get(), "life", {&descriptor, 1}).has_value());
  }
  CHECK(run.test("w0-c7.life") == Life::kAlive);
  theirs.reset();
  CHECK(run.test("w0-c7.life") == Life::kDead);
}

TEST_CASE("a proven dead holder's file is removed on request, and missing means dead",
          "[common][life_lock]") {
  RuntimeDirectory run;
  run.take("w0-c7.life").release().reset();
  CHECK(run.test("w0-c7.life") == Life::kDead);
  CHECK(run.has("w0-c7.life"));
  CHECK(test_life(run.fd.get(), "w0-c7.life", ProvenDead::kRemoveFile).value() == Life::kDead);
  CHECK_FALSE(run.has("w0-c7.life"));
  CHECK(run.test("w0-c7.life") == Life::kDead);
}

TEST_CASE("the file of a live holder is never removed by a test", "[common][life_lock]") {
  RuntimeDirectory run;
  const LifeLock lock = run.take("w0-c7.life");
  CHECK(test_life(run.fd.get(), "w0-c7.life", ProvenDead::kRemoveFile).value() == Life::kAlive);
  CHECK(run.has("w0-c7.life"));
}

TEST_CASE("a holder that removes its lock leaves nothing behind", "[common][life_lock]") {
  RuntimeDirectory run;
  LifeLock lock = run.take("w0.life");
  lock.remove(run.fd.get());
  CHECK_FALSE(run.has("w0.life"));
  CHECK_FALSE(run.is_busy("w0.life"));
}

TEST_CASE("a lock on a file that was unlinked and made anew does not count",
          "[common][life_lock]") {
  RuntimeDirectory run;
  const LifeLock first = run.take("w0.life");
  std::filesystem::remove(run.directory.path() + "/w0.life");
  // The path leads to a new file now, which its taker really holds; the old holder has only a
  // ghost.
  const LifeLock second = run.take("w0.life");
  CHECK(run.is_busy("w0.life"));
  struct stat held {};
  struct stat named {};
  REQUIRE(fstat(second.descriptor(), &held) == 0);
  REQUIRE(fstatat(run.fd.get(), "w0.life", &named, 0) == 0);
  CHECK(held.st_ino == named.st_ino);
}

TEST_CASE("racing takers that also remove never hold the same name twice", "[common][life_lock]") {
  // Each child takes, checks with an exclusive marker file that it is alone, and removes. O_EXCL
  // fails if two were ever inside together.
  RuntimeDirectory run;
  constexpr int kRounds = 300;
  const auto contend = [&] {
    for (int done = 0; done < kRounds;) {
      auto lock = LifeLock::take(run.fd.get(), "w0.life");
      if (!lock) _exit(1);
      if (!lock->has_value()) continue;
      const UniqueFd alone(openat(run.fd.get(), "alone", O_CREAT | O_EXCL | O_RDWR, 0600));
      if (!alone) _exit(2);
      unlinkat(run.fd.get(), "alone", 0);
      (*lock)->remove(run.fd.get());
      ++done;
    }
  };
  const pid_t first = fork();
  if (first == 0) {
    contend();
    _exit(0);
  }
  const pid_t second = fork();
  if (second == 0) {
    contend();
    _exit(0);
  }
  for (pid_t pid : {first, second}) {
    int status = -1;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
}

TEST_CASE("links, other kinds of file and paths are refused as life files", "[common][life_lock]") {
  RuntimeDirectory run;
  std::filesystem::create_symlink("/etc/passwd", run.directory.path() + "/link.life");
  REQUIRE(mkfifo((run.directory.path() + "/fifo.life").c_str(), 0600) == 0);
  std::filesystem::create_directory(run.directory.path() + "/dir.life");
  const std::string name = GENERATE(as<std::string>(), "link.life", "fifo.life", "dir.life",
                                    "../w0.life", "a/b", "", ".");
  CAPTURE(name);
  CHECK_FALSE(LifeLock::take(run.fd.get(), name).has_value());
  CHECK_FALSE(test_life(run.fd.get(), name, ProvenDead::kRemoveFile).has_value());
}

}  // namespace berth
