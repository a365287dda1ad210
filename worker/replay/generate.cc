#include "worker/replay/generate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "worker/replay/content.h"

namespace berth::replay {
namespace {

constexpr uint64_t kBlockTokens = 512;
constexpr uint64_t kArrivalMeanMillis = 200;

// Our own draws: the library's distributions differ between implementations.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t bound) { return mix64(state_ += kMixStep) % bound; }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool happens(uint64_t percent) { return below(100) < percent; }
  // Small numbers far more often than large ones.
  uint64_t skewed_below(uint64_t bound) {
    const double uniform = static_cast<double>(below(1 << 20)) / (1 << 20);
    return std::min(bound - 1,
                    static_cast<uint64_t>(std::pow(static_cast<double>(bound), uniform)) - 1);
  }

 private:
  uint64_t state_;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : dice_(seed) {}

  std::vector<Request> run(TraceKind kind, size_t request_count) {
    std::vector<Request> requests;
    for (size_t i = 0; i < request_count; ++i) {
      clock_ms_ += dice_.below(2 * kArrivalMeanMillis);
      switch (kind) {
        case TraceKind::kChat:
          requests.push_back(next_chat());
          break;
        case TraceKind::kRag:
          requests.push_back(next_rag());
          break;
        case TraceKind::kAgents:
          requests.push_back(next_agent());
          break;
      }
    }
    return requests;
  }

 private:
  using Chain = std::vector<uint64_t>;

  Request make(Chain chain) {
    Request request;
    request.timestamp_ms = clock_ms_;
    request.input_length = chain.size() * kBlockTokens;
    request.output_length = dice_.between(16, 1024);
    request.hash_ids = std::move(chain);
    return request;
  }
  void extend(Chain& chain, uint64_t blocks) {
    for (uint64_t i = 0; i < blocks; ++i) chain.push_back(next_id_++);
  }
  // The n-th of a family of texts that everybody has in common.
  static void append_shared(Chain& chain, uint64_t family, uint64_t index, uint64_t blocks) {
    for (uint64_t i = 0; i < blocks; ++i)
      chain.push_back((uint64_t{1} << 40) | family << 32 | index << 12 | i);
  }

  Request next_chat() {
    if (live_.empty() || dice_.happens(15)) {
      Chain chain;
      append_shared(chain, 1, dice_.skewed_below(8), 4);
      live_.push_back(std::move(chain));
    }
    const size_t index = dice_.below(live_.size());
    extend(live_[index], dice_.between(1, 6));
    Request request = make(live_[index]);
    if (live_[index].size() > 200 || dice_.happens(10)) forget(index);
    return request;
  }

  Request next_rag() {
    Chain chain;
    append_shared(chain, 2, 0, 2);
    const uint64_t documents = dice_.between(2, 4);
    for (uint64_t i = 0; i < documents; ++i) {
      const uint64_t document = dice_.skewed_below(2000);
      append_shared(chain, 3, document, 4 + document % 12);
    }
    extend(chain, 1);
    return make(std::move(chain));
  }

  Request next_agent() {
    if (live_.size() < 4 || dice_.happens(5)) {
      Chain chain;
      append_shared(chain, 4, dice_.skewed_below(6), 16);
      live_.push_back(std::move(chain));
    }
    const size_t index = dice_.below(live_.size());
    Chain chain = live_[index];
    if (dice_.happens(8)) chain.resize(std::max<size_t>(16, chain.size() / 2));
    extend(chain, dice_.between(1, 3));
    live_[index] = chain;
    if (chain.size() > 120) forget(index);
    return make(std::move(chain));
  }

  void forget(size_t index) {
    std::swap(live_[index], live_.back());
    live_.pop_back();
  }

  Dice dice_;
  uint64_t clock_ms_ = 0;
  uint64_t next_id_ = 0;
  std::vector<Chain> live_;
};

}  // namespace

Result<TraceKind> parse_trace_kind(std::string_view text) {
  if (text == "chat") return TraceKind::kChat;
  if (text == "rag") return TraceKind::kRag;
  if (text == "agents") return TraceKind::kAgents;
  return refuse(Reason::kInvalidArgument,
                "--generate " + std::string(text) + ": accepted are chat, rag and agents");
}

std::vector<Request> generate_trace(TraceKind kind, uint64_t seed, size_t request_count) {
  return Generator(seed).run(kind, request_count);
}

}  // namespace berth::replay
