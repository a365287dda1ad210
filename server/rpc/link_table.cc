#include "server/rpc/link_table.h"

#include <string>
#include <utility>
#include <vector>

namespace berth::rpc {
namespace {

Error taken_over(Incarnation incarnation) {
  return {Reason::kStaleIncarnation,
          "a newer Link of incarnation " + std::to_string(incarnation) + " took over"};
}

}  // namespace

Result<> LinkTable::claim(SessionId session, Incarnation incarnation,
                          const std::shared_ptr<Link>& link) {
  std::shared_ptr<Link> older;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = links_[session];
    older = entry.link.lock();
    if (older && entry.incarnation >= incarnation)
      return refuse(Reason::kStaleIncarnation, "there is a Link of incarnation " +
                                                   std::to_string(entry.incarnation) +
                                                   "; re-attach before opening another");
    entry = {incarnation, link};
  }
  if (older) older->end_link(taken_over(incarnation));
  return {};
}

void LinkTable::release(SessionId session, Incarnation incarnation) {
  const std::lock_guard lock(mutex_);
  const auto it = links_.find(session);
  if (it != links_.end() && it->second.incarnation == incarnation) links_.erase(it);
}

std::shared_ptr<Link> LinkTable::find(SessionId session) const {
  const std::lock_guard lock(mutex_);
  const auto it = links_.find(session);
  return it == links_.end() ? nullptr : it->second.link.lock();
}

void LinkTable::deliver(const Ask& ask) {
  const auto link = find(ask.worker);
  if (!link) return;
  if (ask.kind == Ask::Kind::kWorkerFenced)
    link->end_link({Reason::kSessionFenced, "the session was fenced; open a new one"});
  else
    link->ask(ask);
}

void LinkTable::end_older(SessionId session, Incarnation incarnation) {
  std::shared_ptr<Link> older;
  {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(session);
    if (it == links_.end() || it->second.incarnation >= incarnation) return;
    older = it->second.link.lock();
    links_.erase(it);
  }
  if (older) older->end_link(taken_over(incarnation));
}

void LinkTable::end_all(const Error& why) {
  std::vector<std::shared_ptr<Link>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [session, entry] : links_)
      if (auto link = entry.link.lock()) open.push_back(std::move(link));
    links_.clear();
  }
  for (const auto& link : open) link->end_link(why);
}

}  // namespace berth::rpc
