// One run of the simulated server, from its start to its death, and the server's ends of the
// streams that reach it. Internal to the simulated server.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "tests/sim/server.h"

namespace berth::sim {

struct Server::Run {
  Run(MemoryDisk& disk, const Weather& weather, Duration step_max);

  uint64_t number = 0;
  Directory directory;
  policy::Evictor evictor;
  MemoryStore store;
  LogicalClock clock;
  rpc::LinkTable link_table;
  std::deque<Queued> queue;
  std::string degraded;
  bool turn_is_due = false;
  int64_t next_tick = 0;
  int64_t next_reopen = 0;
  bool jobs_due = false;
  bool jobs_have_more = false;
  JobId job_cursor;
  std::map<std::shared_ptr<Stream>, std::shared_ptr<LinkEnd>, Stream::Earlier> links;
  std::map<std::shared_ptr<Stream>, std::shared_ptr<ReattachEnd>, Stream::Earlier> reattaches;
};

// The server's end of one Link: what server/rpc/link_reactor.cc does, without gRPC.
class Server::LinkEnd : public rpc::Link, public std::enable_shared_from_this<LinkEnd> {
 public:
  LinkEnd(Server& server, std::shared_ptr<Stream> stream)
      : server_(server), stream_(std::move(stream)), run_(server.runs_) {}

  void receive(const v1::LinkRequest& request);
  void ask(const Ask& ask) override;
  void end_link(const Error& why) override { end(why); }
  void end(const Error& why);
  void peer_ended();

 private:
  // What a reply says of its request.
  struct Asked {
    v1::LinkRequest::BodyCase kind;
    uint64_t correlation;
    uint64_t sequence;
  };

  bool is_over() const { return has_ended_ || !server_.run_ || server_.run_->number != run_; }
  void introduce(const v1::LinkRequest& first);
  void take_command(const v1::LinkRequest& request);
  void reply(const Asked& asked, const Result<Outcome>& outcome);
  void refuse_request(uint64_t correlation, const Error& error);
  void push(v1::LinkResponse message);
  void link_down();

  Server& server_;
  std::shared_ptr<Stream> stream_;
  const uint64_t run_;
  Caller caller_;
  bool is_introduced_ = false;
  bool is_up_ = false;
  bool has_ended_ = false;

  friend struct Server::Run;
};

// The server's end of one Reattach: what server/rpc/reattach_reactor.cc does. One thing is under
// way at a time; what comes meanwhile waits.
class Server::ReattachEnd : public std::enable_shared_from_this<ReattachEnd> {
 public:
  ReattachEnd(Server& server, std::shared_ptr<Stream> stream)
      : server_(server), stream_(std::move(stream)), run_(server.runs_) {}

  void receive(const v1::ReattachRequest& request);
  void end(const Error& why);
  void peer_ended() { has_ended_ = true; }

 private:
  bool is_over() const { return has_ended_ || !server_.run_ || server_.run_->number != run_; }
  void take_next();
  Result<Command> command_of(const v1::ReattachRequest& request);
  void submit(Command command);
  void take(const Outcome& outcome);
  void write(v1::ReattachResponse message);

  Server& server_;
  std::shared_ptr<Stream> stream_;
  const uint64_t run_;
  std::deque<v1::ReattachRequest> coming_;
  bool is_busy_ = false;
  bool has_ended_ = false;
  Caller caller_;
  berth::EndReattach ending_;
  bool is_foreign_store_ = false;
};

}  // namespace berth::sim
