#include "worker/replay/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace berth::replay {
namespace {

constexpr size_t kBarWidth = 40;

bool is_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal;
}

}  // namespace

void Progress::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

bool Progress::wait(Duration within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(within.millis),
                           [this] { return stopped_.load(); });
}

void Progress::draw(double seconds) const {
  if (!is_terminal() || total_ == 0) return;
  const uint64_t done = done_;
  const size_t filled = std::min<size_t>(kBarWidth, done * kBarWidth / total_);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::fprintf(stderr, "\r[%s] %llu/%llu requests, %.0f/s ", bar.c_str(),
               static_cast<unsigned long long>(done), static_cast<unsigned long long>(total_),
               rate);
  std::fflush(stderr);
}

void Progress::clear() const {
  if (!is_terminal()) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace berth::replay
