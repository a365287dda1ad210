// Which Link leads to which worker session. Asks of the directory find their way through here. A
// session has one Link: a newer one (higher incarnation) takes the place of an older one, and a
// stale one is refused.
//
// Thread-safe. The table holds Links weakly.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "common/error.h"
#include "common/ids.h"
#include "server/directory/event.h"

namespace berth::rpc {

// After these refusals the session cannot go on under its Link.
constexpr bool ends_link(Reason reason) {
  return reason == Reason::kStaleIncarnation || reason == Reason::kUnknownSession ||
         reason == Reason::kSessionFenced || reason == Reason::kReattaching;
}

class Link {
 public:
  virtual ~Link() = default;
  // Sends it to the worker. Never waits; a Link that cannot take more is ended.
  virtual void ask(const Ask& ask) = 0;
  virtual void end_link(const Error& why) = 0;
};

class LinkTable {
 public:
  // From now on asks for the session go to this Link. Ends the session's older one.
  // Errors: stale_incarnation (there is a Link of this or a higher incarnation).
  Result<> claim(SessionId session, Incarnation incarnation, const std::shared_ptr<Link>& link);
  // The Link of that incarnation has ended.
  void release(SessionId session, Incarnation incarnation);

  // Without a Link the ask is dropped: it is repeated once the worker has re-attached.
  // kWorkerFenced ends the Link.
  void deliver(const Ask& ask);
  // The session re-attached: its Links of lower incarnations speak for nobody any more.
  void end_older(SessionId session, Incarnation incarnation);
  void end_all(const Error& why);

 private:
  struct Entry {
    Incarnation incarnation = 0;
    std::weak_ptr<Link> link;
  };
  std::shared_ptr<Link> find(SessionId session) const;

  mutable std::mutex mutex_;  // guards links_
  std::map<SessionId, Entry> links_;
};

}  // namespace berth::rpc
