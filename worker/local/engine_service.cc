#include "worker/local/engine_service.h"

#include "common/log.h"
#include "common/random.h"
#include "common/rpc_status.h"
#include "worker/session/wire.h"

namespace berth::worker {
namespace {

// A Join that is refused before it has a reactor of its own.
class RefusedJoin final : public grpc::ServerBidiReactor<v1::JoinRequest, v1::JoinResponse> {
 public:
  explicit RefusedJoin(const Error& error) { Finish(status_from_error(error)); }
  void OnDone() override { delete this; }
};

std::string random_bytes() { return to_bytes(random_id128()); }

}  // namespace

EngineService::EngineService(EngineServiceOptions options, AgentHost& host, LifeKeeper& keeper)
    : options_(std::move(options)), host_(host), keeper_(keeper), calls_(options_.calls_max) {}

// ---- Join streams ----

grpc::ServerBidiReactor<v1::JoinRequest, v1::JoinResponse>* EngineService::Join(
    grpc::CallbackServerContext*) {
  std::shared_ptr<JoinReactor> reactor;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return new RefusedJoin({Reason::kUnavailable, "this worker is stopping"});
    if (joins_.size() >= options_.joins_max) {
      return new RefusedJoin({Reason::kLimitReached, "too many Join streams are open, " +
                                                         std::to_string(options_.joins_max)});
    }
    const JoinId join(++joins_made_);
    JoinReactor::Listener& listener = *this;
    reactor = std::make_shared<JoinReactor>(join, listener);
    joins_[join].reactor = reactor;
  }
  reactor->start();
  return reactor.get();
}

Result<> EngineService::greeted(JoinId join, const v1::JoinHello& hello) {
  Result<std::string> life_name = keeper_.create();
  if (!life_name) return tl::unexpected(life_name.error());
  {
    const std::lock_guard lock(mutex_);
    joins_[join].life_name = *life_name;
  }
  Agent::Join input;
  input.join = join;
  input.hello = hello;
  input.life_name = *life_name;
  input.request_token = random_bytes();
  input.ticket = random_bytes();
  host_.feed([&](Agent& agent, Time now) { agent.client_joined(std::move(input), now); });
  return {};
}

void EngineService::poisoned(JoinId join, OperationNumber operation) {
  host_.feed([&](Agent& agent, Time now) { agent.client_poisoned(join, operation, now); });
}

void EngineService::ended(JoinId join) {
  std::string life_name;
  std::vector<std::string> tickets;
  {
    const std::lock_guard lock(mutex_);
    const auto found = joins_.find(join);
    if (found == joins_.end()) return;
    found->second.is_over = true;
    life_name = found->second.life_name;
    tickets.push_back(found->second.ticket);
    for (auto& [import, ticket] : found->second.import_tickets) tickets.push_back(ticket);
    found->second.import_tickets.clear();
  }
  for (const std::string& ticket : tickets)
    if (descriptors_ && !ticket.empty()) descriptors_->forget(ticket);
  // A lock that was not passed on is nobody's; its file goes, which proves the same as a free lock.
  if (!life_name.empty()) keeper_.discard(life_name);
  host_.feed([&](Agent& agent, Time now) { agent.client_stream_ended(join, now); });
}

void EngineService::done(JoinId join) {
  // Destroyed outside of the lock, and only after gRPC has returned from its last call to it.
  std::shared_ptr<JoinReactor> reactor;
  const std::lock_guard lock(mutex_);
  auto found = joins_.extract(join);
  if (!found.empty()) reactor = std::move(found.mapped().reactor);
}

std::shared_ptr<JoinReactor> EngineService::find(JoinId join) {
  const std::lock_guard lock(mutex_);
  const auto found = joins_.find(join);
  return found == joins_.end() || found->second.is_over ? nullptr : found->second.reactor;
}

void EngineService::perform(Welcome& action) {
  std::shared_ptr<JoinReactor> reactor;
  {
    const std::lock_guard lock(mutex_);
    const auto found = joins_.find(action.join);
    if (found == joins_.end() || found->second.is_over) return;
    DescriptorServer::Grant grant{action.client, found->second.life_name, {}, {}};
    for (const size_t pool : action.pools) grant.pools.push_back(options_.pool_descriptors[pool]);
    found->second.ticket = action.message.descriptor_ticket();
    if (descriptors_) descriptors_->expect(found->second.ticket, std::move(grant));
    reactor = found->second.reactor;
  }
  v1::JoinResponse message;
  *message.mutable_welcome() = std::move(action.message);
  reactor->write(std::move(message));
}

void EngineService::perform(Push& action) {
  if (const auto reactor = find(action.join)) reactor->write(std::move(action.message));
}

void EngineService::perform(EndJoin& action) {
  if (const auto reactor = find(action.join)) reactor->end(action.error);
}

void EngineService::perform(GrantImport& action) {
  std::shared_ptr<const ImportedPool> imported =
      neighbours_ ? neighbours_->find(action.import) : nullptr;
  if (!imported || !descriptors_) return;
  v1::JoinResponse message;
  std::shared_ptr<JoinReactor> reactor;
  {
    const std::lock_guard lock(mutex_);
    const auto found = joins_.find(action.join);
    if (found == joins_.end() || found->second.is_over) return;
    const std::string ticket = random_bytes();
    found->second.import_tickets.emplace_back(action.import, ticket);
    descriptors_->expect(ticket, {action.client, {}, {}, std::move(imported)});
    message.mutable_pool_added()->set_descriptor_ticket(ticket);
    reactor = found->second.reactor;
  }
  *message.mutable_pool_added()->mutable_pool() = std::move(action.pool);
  reactor->write(std::move(message));
}

// Tickets that nobody has used hold the life lock too.
void EngineService::perform(DropImport& action) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [join, entry] : joins_) {
      std::erase_if(entry.import_tickets, [&](const auto& one) {
        if (one.first == action.import) descriptors_->forget(one.second);
        return one.first == action.import;
      });
    }
  }
  if (neighbours_) neighbours_->perform(action);
}

void EngineService::perform(TestLife& action) {
  const Result<Life> life = keeper_.test(action.life_name);
  if (!life) {
    log::warning("life_test_failed",
                 {{"name", action.life_name}, {"message", life.error().message}});
  }
  // A test that fails proves nothing.
  const auto outcome = life && *life == Life::kDead ? Agent::Life::kFree : Agent::Life::kHeld;
  host_.feed([&](Agent& agent, Time now) { agent.life_tested(action.life_name, outcome, now); });
}

void EngineService::close() {
  const Error stopping{Reason::kUnavailable, "this worker is stopping"};
  std::vector<std::shared_ptr<JoinReactor>> open;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    for (const auto& [join, entry] : joins_) {
      if (!entry.is_over) open.push_back(entry.reactor);
    }
  }
  for (const auto& reactor : open) reactor->end(stopping);
  calls_.close(stopping);
}

// ---- Calls ----

template <class Request, class Response, class Input>
grpc::ServerUnaryReactor* EngineService::serve(grpc::CallbackServerContext* context,
                                               const Request* request, Response* response,
                                               Input input) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const CallId call = calls_.add(
      reactor, [response](Reply& reply) { *response = std::move(std::get<Response>(reply)); });
  if (!call.valid()) {
    reactor->Finish(status_from_error(
        {Reason::kQueueFull, "more than " + std::to_string(options_.calls_max) +
                                 " calls wait for an answer, or this worker is stopping"}));
    return reactor;
  }
  host_.feed([&](Agent& agent, Time now) { input(agent, call, *request, now); });
  return reactor;
}

#define BERTH_SERVE(Method, Request, Response, input)                                             \
  grpc::ServerUnaryReactor* EngineService::Method(                                                \
      grpc::CallbackServerContext* context, const v1::Request* request, v1::Response* response) { \
    return serve(context, request, response,                                                      \
                 [](Agent& agent, CallId call, const v1::Request& body, Time now) {               \
                   agent.input(call, body, now);                                                  \
                 });                                                                              \
  }

BERTH_SERVE(OpenNamespace, WorkerOpenNamespaceRequest, OpenNamespaceResponse, open_namespace)
BERTH_SERVE(Probe, WorkerProbeRequest, ProbeResponse, probe)
BERTH_SERVE(BeginStore, BeginStoreRequest, BeginStoreResponse, begin_store)
BERTH_SERVE(AbortStore, AbortStoreRequest, AbortStoreResponse, abort_store)
BERTH_SERVE(Load, LoadRequest, LoadResponse, load)
BERTH_SERVE(Wait, WaitRequest, WaitResponse, wait)
BERTH_SERVE(Renew, WorkerRenewRequest, WorkerRenewResponse, renew)
BERTH_SERVE(Release, WorkerReleaseRequest, WorkerReleaseResponse, release)
BERTH_SERVE(Leave, LeaveRequest, LeaveResponse, leave)

#undef BERTH_SERVE

grpc::ServerUnaryReactor* EngineService::FinishStore(grpc::CallbackServerContext* context,
                                                     const v1::FinishStoreRequest* request,
                                                     v1::FinishStoreResponse* response) {
  const std::vector<WrittenSpan> spans =
      host_.ask([&](const Agent& agent) { return agent.spans_of(*request); });
  if (const Result<> visible = options_.publish(spans); !visible) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status_from_error(visible.error()));
    return reactor;
  }
  return serve(context, request, response,
               [this](Agent& agent, CallId call, const v1::FinishStoreRequest& body, Time now) {
                 agent.finish_store(call, body, now + options_.finish_within, now);
               });
}

}  // namespace berth::worker
