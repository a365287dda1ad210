// Sole owner of a file descriptor: closes it on destruction. Moves, never copies.
// Not thread-safe; other code may use get() while the owner lives.
#pragma once

#include <unistd.h>

#include <utility>

namespace berth {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor away; the caller closes it from now on.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  // close() is never retried: on Linux the descriptor is gone even when it reports EINTR.
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace berth
