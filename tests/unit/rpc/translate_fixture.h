// A small installed directory that requests are read against, and requests that are right, for
// tests to make wrong.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "server/rpc/fields.h"
#include "server/rpc/translate.h"

namespace berth::testing {

inline constexpr SessionId kWorker{(uint64_t{1} << 40) + 1};
inline constexpr SessionId kClient{(uint64_t{1} << 40) + 2};
inline constexpr SessionId kStranger{(uint64_t{1} << 40) + 3};  // attached through another worker
inline constexpr Token kWorkerToken{1, 2};
inline constexpr NamespaceId kSpace{1};

inline v1::NamespaceSpec space_spec() {
  v1::NamespaceSpec spec;
  spec.set_name("llama");
  spec.set_model("llama-3-8b@3f1c9e");
  spec.set_dtype("bf16");
  spec.set_chunk_tokens(256);
  spec.set_shards(2);
  spec.set_parts(3);
  spec.set_digest_bytes(16);
  return spec;
}

class TranslateFixture {
 protected:
  TranslateFixture() {
    NamespaceSpec spec = rpc::namespace_spec_from_wire(space_spec()).value();
    Session worker{.id = kWorker, .token = kWorkerToken, .name = "w0"};
    Session client{.id = kClient, .role = Role::kClient, .token = {3, 4}, .name = "engine"};
    client.worker = kWorker;
    Session stranger = client;
    stranger.id = kStranger;
    stranger.worker = SessionId(99);
    directory.install({put_of(Namespace{kSpace, spec, rpc::fingerprint_of(spec), 0, ReplicaId()}),
                       put_of(worker), put_of(client), put_of(stranger)});
  }

  rpc::RequestContext context() const { return {directory, config, {kWorker, 1}, {5, 6}}; }

  Result<Command> translate(const v1::LinkRequest& request) const {
    return rpc::to_command(request, context());
  }
  // The refusal's text; empty when the request was taken.
  std::string refusal(const v1::LinkRequest& request) const {
    const auto command = translate(request);
    if (command) return "";
    return command.error().message;
  }

  Directory directory;
  DirectoryConfig config;
};

inline v1::LinkRequest reserve_request() {
  v1::LinkRequest request;
  request.set_correlation(7);
  v1::ReserveRequest& reserve = *request.mutable_reserve();
  reserve.set_client_session(kClient.value());
  reserve.set_operation(1);
  reserve.set_namespace_id(kSpace.value());
  reserve.set_digests(std::string(16, 'a') + std::string(16, 'b'));
  reserve.add_shards(0);
  reserve.add_shards(1);
  reserve.add_sizes(4096);
  return request;
}

inline v1::LinkRequest commit_request() {
  v1::LinkRequest request;
  v1::CommitRequest& commit = *request.mutable_commit();
  commit.set_client_session(kClient.value());
  commit.set_operation(2);
  commit.add_replicas(11);
  commit.add_replicas(12);
  commit.add_offsets(0);
  commit.add_offsets(4096);
  return request;
}

inline v1::LinkRequest acquire_request() {
  v1::LinkRequest request;
  v1::AcquireRequest& acquire = *request.mutable_acquire();
  acquire.set_client_session(kClient.value());
  acquire.set_operation(3);
  acquire.set_namespace_id(kSpace.value());
  acquire.set_digests(std::string(32, 'a'));
  return request;
}

inline v1::LinkRequest register_pool_request() {
  v1::LinkRequest request;
  v1::PoolSpec& spec = *request.mutable_register_pool()->mutable_spec();
  spec.set_name("cpu");
  spec.set_medium(v1::MEDIUM_CPU);
  spec.set_tier(v1::TIER_L1);
  spec.set_scope(v1::SCOPE_HOST);
  spec.set_capacity_bytes(1 << 20);
  spec.set_page_bytes(4096);
  spec.set_backing_bytes(1 << 20);
  return request;
}

inline v1::OpenSessionRequest open_worker_request() {
  v1::OpenSessionRequest request;
  request.mutable_versions()->set_newest(1);
  request.mutable_versions()->set_oldest(1);
  request.set_role(v1::ROLE_WORKER);
  request.set_request_token(std::string(16, 'r'));
  request.set_worker_name("w1");
  request.set_node("node-a");
  request.set_boot_id(std::string(16, 'b'));
  return request;
}

inline v1::OpenSessionRequest open_client_request() {
  v1::OpenSessionRequest request;
  request.mutable_versions()->set_newest(1);
  request.mutable_versions()->set_oldest(1);
  request.set_role(v1::ROLE_CLIENT);
  request.set_request_token(std::string(16, 'c'));
  request.set_engine_id("engine-0");
  request.set_life_name("w1.client-0.life");
  return request;
}

}  // namespace berth::testing
