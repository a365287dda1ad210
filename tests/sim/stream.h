// One bidirectional stream between a worker and the server: what is sent arrives in order, until
// the stream breaks; then what is under way is lost, and each side hears of it in its own time.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "common/error.h"
#include "tests/sim/schedule.h"

namespace berth::sim {

enum class Side : uint8_t { kServer = 0, kWorker = 1 };
inline Side other(Side side) { return side == Side::kServer ? Side::kWorker : Side::kServer; }

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Delivery = std::function<void()>;
  using Ending = std::function<void(const Error&)>;
  enum class Order : uint8_t { kInOrder, kFirst };  // kFirst: before what waits to be sent

  Stream(Schedule& schedule, Random& random, int64_t latency_max)
      : schedule_(schedule),
        random_(random),
        latency_max_(latency_max),
        number_(schedule.next_number()) {}

  // Streams are kept in the order of their numbers: addresses differ from run to run.
  struct Earlier {
    bool operator()(const std::shared_ptr<Stream>& a, const std::shared_ptr<Stream>& b) const {
      return a->number_ < b->number_;
    }
  };

  void on_end(Side side, Ending what) { end(side).what = std::move(what); }
  bool is_open(Side side) const { return ends_[static_cast<size_t>(side)].open; }

  void send(Side to, Delivery what, Order order = Order::kInOrder) {
    End& receiver = end(to);
    if (!receiver.open || !end(other(to)).open) return;
    if (order == Order::kFirst)
      receiver.coming.push_front(std::move(what));
    else
      receiver.coming.push_back(std::move(what));
    deliver_later(to);
  }

  // This side closes: it hears nothing more; the other hears of it after all that was sent.
  void close(Side by, Error why) {
    if (!end(by).open) return;
    end(by).open = false;
    const Side to = other(by);
    end(to).coming.push_back([this, to, why = std::move(why)] { hear_end(to, why); });
    deliver_later(to);
  }

  // The network takes it down. A side may learn much later, as of a half-open connection.
  void cut(int64_t server_hears_after, int64_t worker_hears_after) {
    const std::array delays{server_hears_after, worker_hears_after};
    for (const Side side : {Side::kServer, Side::kWorker}) {
      end(side).coming.clear();
      end(side).cut = true;
      schedule_.after(delays[static_cast<size_t>(side)], [self = shared_from_this(), side] {
        self->hear_end(side, {Reason::kUnavailable, "the connection broke"});
      });
    }
  }

  // What is sent to this side does not arrive before then.
  void hold(Side to, int64_t millis) { end(to).not_before = schedule_.now() + millis; }

  // The worker's side breaks; what it sent still arrives, and then the server hears of the end.
  void break_late(int64_t worker_hears_after) {
    schedule_.after(worker_hears_after, [self = shared_from_this()] {
      if (!self->end(Side::kWorker).open) return;
      const Error why{Reason::kUnavailable, "the connection broke"};
      self->close(Side::kWorker, why);
      if (self->end(Side::kWorker).what) self->end(Side::kWorker).what(why);
    });
  }

  // Nothing more is delivered or told; lets go of whoever is held by what was to be.
  void forget() {
    for (End& one : ends_) {
      one.coming.clear();
      one.what = nullptr;
    }
  }

  // What is sent to this side is lost from now on, and nobody is told.
  void lose(Side to) {
    end(to).coming.clear();
    end(to).cut = true;
  }

 private:
  struct End {
    bool open = true;
    bool cut = false;
    int64_t last = 0;
    int64_t not_before = 0;
    std::deque<Delivery> coming;
    Ending what;
  };
  End& end(Side side) { return ends_[static_cast<size_t>(side)]; }

  void deliver_later(Side to) {
    End& receiver = end(to);
    const int64_t at = std::max(receiver.last, schedule_.now() + random_.between(0, latency_max_));
    receiver.last = at;
    deliver_at(to, at);
  }
  void deliver_at(Side to, int64_t at) {
    schedule_.after(at - schedule_.now(), [self = shared_from_this(), to] {
      End& now = self->end(to);
      if (now.not_before > self->schedule_.now()) return self->deliver_at(to, now.not_before);
      if (now.coming.empty()) return;
      const Delivery what = std::move(now.coming.front());
      now.coming.pop_front();
      if (now.open && !now.cut) what();
    });
  }
  void hear_end(Side side, const Error& why) {
    if (!std::exchange(end(side).open, false)) return;
    end(side).coming.clear();
    if (end(side).what) end(side).what(why);
  }

  Schedule& schedule_;
  Random& random_;
  const int64_t latency_max_;
  const uint64_t number_;
  std::array<End, 2> ends_;
};

}  // namespace berth::sim
