#include "server/ctl/drain_progress.h"

#include <algorithm>
#include <ostream>

namespace berth::ctl {
namespace {

constexpr size_t kBarWidth = 30;
constexpr std::string_view kClearLine = "\x1b[K";

void append_count(std::string& text, uint64_t count, const char* word, const char* before) {
  if (count > 0) text += before + std::to_string(count) + " " + word;
}

}  // namespace

std::string DrainLeft::text() const {
  std::string parts;
  const auto add = [&](uint64_t count, const char* word) {
    append_count(parts, count, word, parts.empty() ? ": " : ", ");
  };
  add(ready, "ready");
  add(writing, "being written");
  add(retiring, "retiring");
  add(quarantined, "quarantined");
  append_count(parts, leased, "leased", "; ");
  return std::to_string(replicas()) + (replicas() == 1 ? " replica left" : " replicas left") +
         parts;
}

DrainLeft left_in(const std::vector<v1::PoolRow>& pools) {
  DrainLeft left;
  for (const v1::PoolRow& pool : pools) {
    const v1::PoolUsage& usage = pool.usage();
    left.ready += usage.ready_replicas();
    left.leased += usage.leased_replicas();
    left.writing += usage.reserved_replicas();
    left.retiring += usage.retiring_replicas();
    left.quarantined += usage.quarantined_replicas();
    // Closed or gone: there is nothing to take back.
    const bool is_over =
        pool.state() == v1::POOL_STATE_CLOSING || pool.state() == v1::POOL_STATE_GONE;
    left.undrained |= !pool.draining() && !is_over;
  }
  return left;
}

void DrainProgress::show(const DrainLeft& left) {
  most_ = std::max({most_, left.replicas(), uint64_t{1}});
  const std::string text = left.text();
  if (text == shown_) return;
  shown_ = text;
  if (!console_.terminal) {
    console_.err << text << std::endl;
    return;
  }
  const uint64_t done = most_ - left.replicas();
  const size_t filled = static_cast<size_t>(done * kBarWidth / most_);
  std::string line = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
                     std::to_string(done * 100 / most_) + "%  " + text;
  const size_t columns = console_.size().columns;
  if (columns > 1 && line.size() >= columns) line.resize(columns - 1);
  console_.err << '\r' << line << kClearLine << std::flush;
  line_is_open_ = true;
}

void DrainProgress::say(const std::string& sentence) {
  end_line();
  console_.err << sentence << std::endl;
}

void DrainProgress::end_line() {
  if (line_is_open_) console_.err << std::endl;
  line_is_open_ = false;
  shown_.clear();
}

}  // namespace berth::ctl
