#include "tests/unit/local/fake_server.h"

namespace berth::worker {
namespace {

constexpr size_t kDigestBytes = 16;

v1::StoreIdentity identity() {
  v1::StoreIdentity store;
  store.set_store_id(std::string(16, 's'));
  store.set_epoch(1);
  return store;
}

}  // namespace

bool FakeServer::perform(Action& action) {
  if (const auto* open = std::get_if<CallOpenSession>(&action)) {
    v1::OpenSessionResponse opened;
    opened.set_version(1);
    *opened.mutable_store() = identity();
    opened.set_session(10);
    opened.set_token(std::string(16, 't'));
    opened.mutable_limits()->set_batch_items_max(64);
    opened.mutable_limits()->set_operations_max(64);
    opened.mutable_limits()->set_object_bytes_max(1 << 20);
    host_.feed(
        [&](Agent& agent, Time now) { agent.session_opened(open->connection, opened, now); });
  } else if (const auto* sent = std::get_if<SendReattach>(&action)) {
    v1::ReattachResponse response;
    if (sent->message.has_hello()) *response.mutable_welcome()->mutable_store() = identity();
    if (sent->message.has_end()) response.mutable_done();
    host_.feed(
        [&](Agent& agent, Time now) { agent.reattach_received(sent->connection, response, now); });
  } else if (const auto* link = std::get_if<SendLink>(&action)) {
    answer(*link);
  } else {
    return std::holds_alternative<OpenReattach>(action) ||
           std::holds_alternative<EndReattach>(action) ||
           std::holds_alternative<OpenLink>(action) ||
           std::holds_alternative<CloseConnection>(action);
  }
  return true;
}

void FakeServer::answer(const SendLink& action) {
  const v1::LinkRequest& request = action.message;
  v1::LinkResponse response;
  response.set_correlation(request.correlation());
  {
    const std::lock_guard lock(mutex_);
    switch (request.body_case()) {
      case v1::LinkRequest::kHello:
        *response.mutable_welcome()->mutable_store() = identity();
        break;
      case v1::LinkRequest::kRegisterPool:
        pool_ = ++next_id_;
        response.mutable_register_pool()->set_pool(pool_);
        break;
      case v1::LinkRequest::kOpenClient:
        response.mutable_open_client()->set_session(++next_id_);
        response.mutable_open_client()->set_token(std::string(16, 'c'));
        break;
      case v1::LinkRequest::kOpenNamespace:
        response.mutable_open_namespace()->set_namespace_id(3);
        response.mutable_open_namespace()->set_fingerprint(std::string(16, 'f'));
        response.mutable_open_namespace()->mutable_spec()->set_digest_bytes(kDigestBytes);
        break;
      case v1::LinkRequest::kReserve:
        reserve(request.reserve(), response.mutable_reserve());
        break;
      case v1::LinkRequest::kCommit:
        for (int i = 0; i < request.commit().replicas_size(); ++i) {
          const uint64_t replica = request.commit().replicas(i);
          const auto& [digest, size] = reserved_.at(replica);
          ready_[digest] = {replica, request.commit().offsets(i), size};
          response.mutable_commit()->mutable_codes()->push_back(v1::COMMIT_CODE_COMMITTED);
        }
        break;
      case v1::LinkRequest::kAcquire:
        acquire(request.acquire(), response.mutable_acquire());
        break;
      case v1::LinkRequest::kProbe:
        response.mutable_probe()->set_usable_chunks(1);
        break;
      case v1::LinkRequest::kAbort:
        response.mutable_abort();
        break;
      case v1::LinkRequest::kRelease:
        response.mutable_release();
        break;
      case v1::LinkRequest::kFenceClient:
        fenced_.insert(request.fence_client().client_session());
        response.mutable_fence_client();
        break;
      case v1::LinkRequest::kCloseSession:
        closed_.insert(request.close_session().client_session());
        response.mutable_close_session();
        break;
      default:
        return;
    }
  }
  host_.feed(
      [&](Agent& agent, Time now) { agent.link_received(action.connection, response, now); });
}

void FakeServer::reserve(const v1::ReserveRequest& request, v1::ReserveResponse* response) {
  response->set_first_replica(next_id_ + 1);
  for (size_t at = 0; at < request.digests().size(); at += kDigestBytes) {
    response->mutable_codes()->push_back(v1::STORE_CODE_GRANTED);
    response->add_pools(pool_);
    reserved_[++next_id_] = {request.digests().substr(at, kDigestBytes), request.sizes(0)};
  }
}

void FakeServer::acquire(const v1::AcquireRequest& request, v1::AcquireResponse* response) {
  for (size_t at = 0; at < request.digests().size(); at += kDigestBytes) {
    const auto found = ready_.find(request.digests().substr(at, kDigestBytes));
    if (found == ready_.end()) break;
    response->set_chunks(response->chunks() + 1);
    response->mutable_classes()->push_back(v1::CHUNK_CLASS_L1_LOCAL);
    response->add_replicas(found->second.replica);
    response->add_pools(pool_);
    response->add_offsets(found->second.offset);
    response->add_sizes(found->second.size);
  }
  if (response->chunks() > 0) response->set_lease(++next_id_);
}

}  // namespace berth::worker
