// A relay between workers and the server, through which a test breaks the network: resets every
// connection, refuses new ones, or keeps them open and passes nothing on, one way or both.
//
//   Relay relay(server_socket);        // listens at relay.address(), connects to the unix socket
//   relay.freeze(Way::kToServer);      // what workers say arrives after thaw()
//   relay.reset_all();                 // both sides of every connection get a reset
//
// Runs in a thread of its own until it is destroyed. All methods may be called from any thread.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "common/unique_fd.h"

namespace berth::testing {

class Relay {
 public:
  enum class Way : uint8_t { kToServer = 1, kToWorker = 2, kBoth = 3 };

  explicit Relay(std::string server_socket);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::string& address() const { return address_; }
  void reset_all();
  void refuse_new(bool refuses);
  void freeze(Way way);
  void thaw();

 private:
  // One direction of a connection: what was read and is not written yet.
  struct Stream {
    std::string pending;
  };
  struct Connection {
    UniqueFd worker;
    UniqueFd server;
    Stream to_server;
    Stream to_worker;
  };
  struct Orders {
    bool stops = false;
    bool resets = false;
    bool refuses = false;
    bool freezes_to_server = false;
    bool freezes_to_worker = false;
  };

  void run();
  Orders take_orders();
  void wait(const Orders& orders);
  void accept_one(const Orders& orders);
  void pass_on(const Orders& orders);
  void wake() const;

  const std::string server_socket_;
  std::string address_;
  UniqueFd listener_;
  UniqueFd waker_;
  std::list<Connection> connections_;  // of the thread
  std::mutex mutex_;                   // guards orders_
  Orders orders_;
  std::thread thread_;
};

}  // namespace berth::testing
