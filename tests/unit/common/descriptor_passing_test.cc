// Descriptors over unix sockets, and who is at the other end.
#include "common/descriptor_passing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/process.h"
#include "common/unix_socket.h"
#include "tests/unit/common/child_process.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

size_t open_descriptor_count() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("descriptors arrive in order, close-on-exec, and lead to the same files",
          "[common][descriptors]") {
  const testing::TemporaryDirectory directory;
  auto [left, right] = socket_pair_seqpacket().value();
  const UniqueFd a(open((directory.path() + "/a").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const UniqueFd b(open((directory.path() + "/b").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const int sent[] = {b.get(), a.get()};
  REQUIRE(send_descriptors(left.get(), "pool e1-2", sent).has_value());
  const auto message = receive_descriptors(right.get());
  REQUIRE(message.has_value());
  CHECK(message->payload == "pool e1-2");
  REQUIRE(message->descriptors.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    struct stat original {};
    struct stat received {};
    REQUIRE(fstat(sent[i], &original) == 0);
    REQUIRE(fstat(message->descriptors[i].get(), &received) == 0);
    CHECK(original.st_ino == received.st_ino);
    CHECK((fcntl(message->descriptors[i].get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("messages keep their boundaries, with or without descriptors", "[common][descriptors]") {
  auto [left, right] = socket_pair_seqpacket().value();
  REQUIRE(send_descriptors(left.get(), "one", {}).has_value());
  REQUIRE(send_descriptors(left.get(), "two", {}).has_value());
  CHECK(receive_descriptors(right.get())->payload == "one");
  CHECK(receive_descriptors(right.get())->payload == "two");
}

TEST_CASE("what is past a bound is refused before it is sent", "[common][descriptors]") {
  auto [left, right] = socket_pair_seqpacket().value();
  CHECK_FALSE(send_descriptors(left.get(), "", {}).has_value());
  CHECK_FALSE(send_descriptors(left.get(), std::string(kDescriptorPayloadBytesMax + 1, 'x'), {})
                  .has_value());
  const std::vector<int> many(kDescriptorsPerMessageMax + 1, 0);
  const auto refused = send_descriptors(left.get(), "x", many);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "65 descriptors in one message; accepted: up to 64");
}

TEST_CASE("a message at the bounds passes", "[common][descriptors]") {
  auto [left, right] = socket_pair_seqpacket().value();
  const std::vector<int> many(kDescriptorsPerMessageMax, 0);
  REQUIRE(
      send_descriptors(left.get(), std::string(kDescriptorPayloadBytesMax, 'x'), many).has_value());
  const auto message = receive_descriptors(right.get());
  REQUIRE(message.has_value());
  CHECK(message->descriptors.size() == kDescriptorsPerMessageMax);
}

TEST_CASE("a message that would be cut is refused and leaks no descriptor",
          "[common][descriptors]") {
  auto [left, right] = socket_pair_seqpacket().value();
  const std::string large(kDescriptorPayloadBytesMax + 1, 'x');
  iovec data{const_cast<char*>(large.data()), large.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr raw{};
  raw.msg_iov = &data;
  raw.msg_iovlen = 1;
  raw.msg_control = control;
  raw.msg_controllen = sizeof control;
  cmsghdr* part = CMSG_FIRSTHDR(&raw);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(CMSG_DATA(part)) = right.get();
  REQUIRE(sendmsg(left.get(), &raw, MSG_NOSIGNAL) > 0);
  const size_t before = open_descriptor_count();
  const auto message = receive_descriptors(right.get());
  REQUIRE_FALSE(message.has_value());
  CHECK(message.error().reason == Reason::kInvalidArgument);
  CHECK(open_descriptor_count() == before);
}

TEST_CASE("a closed peer is unavailable to both sides and raises no signal",
          "[common][descriptors]") {
  auto [left, right] = socket_pair_seqpacket().value();
  right.reset();
  CHECK(receive_descriptors(left.get()).error().reason == Reason::kUnavailable);
  CHECK(send_descriptors(left.get(), "x", {}).error().reason == Reason::kUnavailable);
}

TEST_CASE("a receive with a timeout ends with deadline_exceeded", "[common][descriptors]") {
  auto [left, right] = socket_pair_seqpacket().value();
  REQUIRE(set_socket_timeout(right.get(), milliseconds(1)).has_value());
  CHECK(receive_descriptors(right.get()).error().reason == Reason::kDeadlineExceeded);
}

TEST_CASE("a listener accepts connections, with its permissions on the file",
          "[common][unix_socket]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/w0.sock";
  const auto listener = listen_seqpacket(path, 0660);
  REQUIRE(listener.has_value());
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0660);
  const auto client = connect_seqpacket(path);
  REQUIRE(client.has_value());
  const auto server = accept_connection(listener->get());
  REQUIRE(server.has_value());
  REQUIRE(send_descriptors(client->get(), "hello", {}).has_value());
  CHECK(receive_descriptors(server->get())->payload == "hello");
}

TEST_CASE("a socket file that nobody serves is replaced, a served one is not",
          "[common][unix_socket]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/w0.sock";
  auto first = listen_seqpacket(path, 0600).value();
  const auto second = listen_seqpacket(path, 0600);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().reason == Reason::kNameInUse);
  first.reset();
  CHECK(connect_seqpacket(path).error().reason == Reason::kUnavailable);
  CHECK(listen_seqpacket(path, 0600).has_value());
}

TEST_CASE("a file that is no socket is never removed to listen there", "[common][unix_socket]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/precious";
  std::ofstream(path) << "data";
  CHECK_FALSE(listen_seqpacket(path, 0600).has_value());
  CHECK(std::filesystem::file_size(path) == 4);
}

TEST_CASE("a path that does not fit a unix socket is refused with the bound",
          "[common][unix_socket]") {
  const std::string path = GENERATE(as<std::string>(), "", "/tmp/" + std::string(103, 'x'));
  CHECK(listen_seqpacket(path, 0600).error().message.find("1 to 107 characters") !=
        std::string::npos);
  CHECK(connect_seqpacket(path).error().reason == Reason::kInvalidConfig);
}

TEST_CASE("the kernel says who is at the other end", "[common][unix_socket]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/w0.sock";
  const auto listener = listen_seqpacket(path, 0600).value();
  testing::Gate connected;
  testing::ChildProcess client([&] {
    const auto connection = connect_seqpacket(path);
    if (connection) connected.open();
    pause();
  });
  const auto server = accept_connection(listener.get()).value();
  connected.wait();
  const auto peer = peer_credentials(server.get());
  REQUIRE(peer.has_value());
  CHECK(peer->pid == client.pid());
  CHECK(peer->uid == getuid());
  const auto pidfd = peer_pidfd(server.get());
  REQUIRE(pidfd.has_value());
  CHECK_FALSE(has_exited(pidfd->get()));
  client.kill_hard();
  CHECK(has_exited(pidfd->get()));
}

TEST_CASE("a pidfd tells when its process has ended", "[common][process]") {
  testing::ChildProcess child([] { pause(); });
  const auto pidfd = open_pidfd(child.pid());
  REQUIRE(pidfd.has_value());
  CHECK_FALSE(has_exited(pidfd->get()));
  const pid_t pid = child.pid();
  child.kill_hard();
  CHECK(has_exited(pidfd->get()));
  CHECK_FALSE(open_pidfd(pid).has_value());
}

}  // namespace berth
