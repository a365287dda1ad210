#include "tests/unit/ctl/fake_admin.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <sstream>

#include "common/ids.h"
#include "server/ctl/berthctl.h"

namespace berth::ctl {

std::mutex& shared_mutex() {
  static std::mutex mutex;
  return mutex;
}

WatchScript FakeAdmin::next_watch(const v1::WatchEventsRequest& request) {
  const std::lock_guard lock(shared_mutex());
  seen.push_back("WatchEvents " + request.ShortDebugString());
  if (watches.empty())
    return {.answers = {}, .end = grpc::Status(grpc::StatusCode::INTERNAL, "no further script")};
  const WatchScript script = watches.front();
  watches.pop_front();
  return script;
}

grpc::Status FakeAdmin::WatchEvents(Context*, const v1::WatchEventsRequest* request,
                                    grpc::ServerWriter<v1::WatchEventsResponse>* writer) {
  const WatchScript script = next_watch(*request);
  for (const auto& answer : script.answers) writer->Write(answer);
  return script.end;
}

void FakeServer::start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
  builder.RegisterService(&admin);
  server_ = builder.BuildAndStart();
  REQUIRE(server_ != nullptr);
}

void FakeServer::stop() {
  if (!server_) return;
  server_->Shutdown();
  server_->Wait();
  server_.reset();
}

namespace {

// Orders what happened here and in the service so far; see shared_mutex().
void meet_service() { const std::lock_guard lock(shared_mutex()); }

}  // namespace

Ran run_berthctl(std::vector<std::string> arguments, const Place& place) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out,
                  .err = err,
                  .terminal = place.terminal,
                  .colour = place.colour,
                  .size =
                      [&] {
                        return TerminalSize{place.columns, place.rows};
                      },
                  .wait =
                      [&](Duration) {
                        meet_service();
                        const bool goes_on = place.wait();
                        meet_service();
                        return goes_on;
                      },
                  .environment = [&](const char* name) -> std::optional<std::string> {
                    return std::string(name) == "BERTH_SERVER" ? place.berth_server : std::nullopt;
                  }};
  meet_service();
  const int exit_code = run(arguments, console);
  meet_service();
  return {exit_code, out.str(), err.str()};
}

Ran run_against(const FakeServer& server, std::vector<std::string> arguments, const Place& place) {
  arguments.insert(arguments.end(), {"--server", server.address()});
  return run_berthctl(std::move(arguments), place);
}

uint64_t id3(uint64_t counter) { return make_id<PoolId>(3, counter).value(); }

}  // namespace berth::ctl
