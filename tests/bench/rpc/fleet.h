// One berthd with a population of objects, the members that own it, and the echo server beside it,
// all reached in the same way by as many connections.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/v1/admin.grpc.pb.h"
#include "tests/bench/rpc/directory_flows.h"
#include "tests/bench/rpc/echo_flow.h"
#include "tests/bench/rpc/local_server.h"

namespace berth::bench {

struct FleetSettings {
  Transport transport = Transport::kTcp;
  std::string durability = "interval";
  uint64_t population = 10'000;
  uint64_t members = 4;
  bool has_slow_disk = false;  // stall_disk() has an effect
  std::string directory;       // for the state; empty: the system's for temporary files
};

class Fleet {
 public:
  // Started, attached and filled. Errors: of any step, with its name.
  static Result<std::unique_ptr<Fleet>> start(const FleetSettings& settings);
  ~Fleet();

  EventLoop& loop() { return *loop_; }
  FleetView view();
  EchoPeer& peer(uint64_t index) { return *peers_[index % peers_.size()]; }
  // Attached beside the others, for what happens while they are measured; in no view().
  Result<Member*> add_extra(uint64_t room_objects);
  // Its session has ended, or its objects do not matter any more.
  void remove_extra(Member& member);

  LocalServer& berthd() { return *berthd_; }
  const LocalServer& echo() const { return *echo_; }
  v1::Admin::Stub& admin() { return *admin_; }
  const std::string& folder() const { return folder_.path(); }

  // Growth of berthd's resident memory for each object of the population.
  double resident_bytes_per_object() const { return resident_bytes_per_object_; }
  double fill_seconds() const { return fill_seconds_; }

  // Evicts everything that workloads stored, and waits until its pages are free.
  Result<> evict_stored();
  // Kills berthd, starts it again and attaches every member with its ledger. What each took, in
  // seconds: until it takes connections, until everything is verified.
  struct Restarted {
    double serving_seconds = 0;
    double verified_seconds = 0;
  };
  Result<Restarted> restart_berthd();
  // From now on, or no longer, every fsync of berthd takes 200 ms longer.
  Result<> stall_disk();
  void end_disk_stall();

 private:
  Fleet(const FleetSettings& settings, WorkFolder folder)
      : settings_(settings), folder_(std::move(folder)) {}
  Result<> start_servers();
  Result<> attach();
  Result<> fill();
  Result<std::unique_ptr<Member>> attach_member(uint64_t room_bytes,
                                                const std::string& population_namespace);
  std::string disk_switch() const { return folder() + "/disk-stalls"; }

  const FleetSettings settings_;
  WorkFolder folder_;
  std::optional<LocalServer> berthd_;
  std::optional<LocalServer> echo_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::unique_ptr<Member>> extras_;
  std::vector<std::unique_ptr<Member>> removed_;  // their last events may be still to come
  uint64_t members_attached_ = 0;
  std::vector<std::unique_ptr<EchoPeer>> peers_;
  std::unique_ptr<EventLoop> loop_;  // ends first
  double resident_bytes_per_object_ = 0;
  double fill_seconds_ = 0;
};

}  // namespace berth::bench
