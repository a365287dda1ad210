#include "tests/bench/rpc/fleet.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "common/rpc_channel.h"
#include "common/small_file.h"
#include "tests/bench/core/objects.h"
#include "tests/bench/rpc/ask_admin.h"
#include "tests/bench/rpc/load.h"
#include "tests/bench/rpc/process_facts.h"

namespace berth::bench {
namespace {

constexpr const char* kPopulationNamespace = "bench-population";
constexpr const char* kExtraNamespace = "bench-extra";
constexpr Duration kBeat = milliseconds(200);
constexpr uint64_t kFillBatch = 500;
constexpr uint64_t kFillCallers = 8;

double seconds_since(uint64_t start_nanos) {
  return static_cast<double>(now_nanos() - start_nanos) / 1e9;
}

std::string berthd_config(const FleetSettings& settings) {
  std::ostringstream text;
  text << "[store]\n"
       << "durability = \"" << settings.durability << "\"\n";
  return text.str();
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::start(const FleetSettings& settings) {
  Result<WorkFolder> folder = WorkFolder::make(settings.directory);
  if (!folder) return tl::unexpected(folder.error());
  std::unique_ptr<Fleet> fleet(new Fleet(settings, std::move(*folder)));
  for (const auto step : {&Fleet::start_servers, &Fleet::attach, &Fleet::fill})
    if (const Result<> done = (fleet.get()->*step)(); !done) return tl::unexpected(done.error());
  return fleet;
}

Fleet::~Fleet() {
  if (!loop_) return;
  {
    const std::lock_guard lock(loop_->mutex());
    for (const auto* group : {&members_, &extras_})
      for (const auto& member : *group) member->cancel();
    for (const auto& peer : peers_) peer->cancel();
  }
  loop_->stop();
}

Result<> Fleet::start_servers() {
  Result<LocalServer> berthd = LocalServer::start_berthd(
      folder(), berthd_config(settings_), settings_.has_slow_disk ? disk_switch() : "");
  if (!berthd) return tl::unexpected(berthd.error());
  berthd_.emplace(std::move(*berthd));
  Result<LocalServer> echo = LocalServer::start_echo(folder());
  if (!echo) return tl::unexpected(echo.error());
  echo_.emplace(std::move(*echo));
  const auto channel =
      make_channel("server", berthd_->address(Transport::kUnix), {.own_connection = true});
  if (!channel) return tl::unexpected(channel.error());
  admin_ = v1::Admin::NewStub(*channel);
  return {};
}

Result<> Fleet::attach() {
  loop_ = std::make_unique<EventLoop>(kBeat, [this] {
    for (const auto* group : {&members_, &extras_})
      for (const auto& member : *group) member->beat();
  });
  for (uint64_t i = 0; i < settings_.members; ++i) {
    auto member = attach_member(0, kPopulationNamespace);
    if (!member) return tl::unexpected(member.error());
    auto peer = EchoPeer::connect(*loop_, echo_->address(settings_.transport));
    if (!peer) return tl::unexpected(peer.error());
    const std::lock_guard lock(loop_->mutex());
    members_.push_back(std::move(*member));
    peers_.push_back(std::move(*peer));
  }
  return {};
}

Result<std::unique_ptr<Member>> Fleet::attach_member(uint64_t room_bytes,
                                                     const std::string& population_namespace) {
  MemberSpec spec;
  spec.number = ++members_attached_;
  spec.server = berthd_->address(settings_.transport);
  spec.budget_bytes = room_bytes;
  spec.population_namespace = population_namespace;
  return Member::attach(*loop_, spec);
}

Result<Member*> Fleet::add_extra(uint64_t room_objects) {
  auto member = attach_member(room_objects * kPageBytes, kExtraNamespace);
  if (!member) return tl::unexpected(member.error());
  const std::lock_guard lock(loop_->mutex());
  extras_.push_back(std::move(*member));
  return extras_.back().get();
}

void Fleet::remove_extra(Member& member) {
  const std::lock_guard lock(loop_->mutex());
  member.cancel();
  const auto found = std::find_if(extras_.begin(), extras_.end(),
                                  [&](const auto& extra) { return extra.get() == &member; });
  removed_.push_back(std::move(*found));
  extras_.erase(found);
}

Result<> Fleet::fill() {
  FlowSettings settings;
  settings.workload = Workload::kStore;
  settings.batch = kFillBatch;
  settings.stores = Objects::kPopulation;
  Flows flows;
  for (uint64_t i = 0; i < kFillCallers; ++i) flows.push_back(make_flow(view(), settings, i));
  const uint64_t before = resident_bytes_of(berthd_->pid());
  const uint64_t start = now_nanos();
  const uint64_t cycles = (settings_.population + kFillBatch - 1) / kFillBatch;
  if (const Result<> filled = Load(*loop_, flows).run_cycles(cycles); !filled) return filled;
  fill_seconds_ = seconds_since(start);
  const uint64_t after = resident_bytes_of(berthd_->pid());
  resident_bytes_per_object_ = static_cast<double>(after - std::min(before, after)) /
                               static_cast<double>(cycles * kFillBatch);
  return {};
}

FleetView Fleet::view() {
  FleetView view{*loop_, {}};
  for (const auto& member : members_) view.members.push_back(member.get());
  return view;
}

Result<> Fleet::evict_stored() { return evict_namespace(*admin_, kStoreNamespace); }

Result<Fleet::Restarted> Fleet::restart_berthd() {
  Restarted took;
  const uint64_t start = now_nanos();
  berthd_->kill_hard();
  if (const Result<> started = berthd_->start_again(); !started)
    return tl::unexpected(started.error());
  took.serving_seconds = seconds_since(start);
  for (const auto* group : {&members_, &extras_})
    for (const auto& member : *group)
      if (const Result<> attached = member->attach_again(); !attached)
        return tl::unexpected(attached.error());
  took.verified_seconds = seconds_since(start);
  return took;
}

Result<> Fleet::stall_disk() { return write_small_file(disk_switch(), ""); }

void Fleet::end_disk_stall() { ::unlink(disk_switch().c_str()); }

}  // namespace berth::bench
