#include "tests/integration/raw_worker.h"

#include <catch2/catch.hpp>

#include "common/address.h"
#include "common/rpc_channel.h"

namespace berth::testing {
namespace {

void set_versions(v1::ProtocolVersions* versions) {
  versions->set_newest(1);
  versions->set_oldest(1);
}

}  // namespace

RawWorker::RawWorker(const std::string& address, const std::string& name) : name_(name) {
  const auto parsed = parse_address("address", address);
  REQUIRE(parsed);
  auto channel = make_channel("address", *parsed, {.own_connection = true});
  REQUIRE(channel);
  stub_ = v1::Directory::NewStub(*channel);

  v1::OpenSessionRequest open;
  set_versions(open.mutable_versions());
  open.set_role(v1::ROLE_WORKER);
  open.set_request_token(digest('w'));
  open.set_worker_name(name);
  open.set_node("node-raw");
  open.set_boot_id(digest('b'));
  const auto opened = plain_call(&v1::Directory::Stub::OpenSession, open);
  REQUIRE(opened);
  session_ = opened->session();
  token_ = opened->token();
  attach();
  open_link();

  v1::RegisterPoolRequest pool;
  pool.mutable_spec()->set_name(name + "-cpu");
  pool.mutable_spec()->set_medium(v1::MEDIUM_CPU);
  pool.mutable_spec()->set_tier(v1::TIER_L1);
  pool.mutable_spec()->set_scope(v1::SCOPE_HOST);
  pool.mutable_spec()->set_capacity_bytes(kPages * kPage);
  pool.mutable_spec()->set_backing_bytes(kPages * kPage);
  pool.mutable_spec()->set_page_bytes(kPage);
  const auto registered = call(&v1::Directory::Stub::RegisterPool, pool);
  REQUIRE(registered);
  pool_ = registered->pool();

  v1::OpenSessionRequest client;
  set_versions(client.mutable_versions());
  client.set_role(v1::ROLE_CLIENT);
  client.set_request_token(digest('c'));
  client.set_engine_id("engine-raw");
  client.set_life_name(name + "-c1.life");
  const auto joined = call(&v1::Directory::Stub::OpenSession, client);
  REQUIRE(joined);
  client_ = joined->session();

  v1::OpenNamespaceRequest wanted;
  *wanted.mutable_spec() = namespace_spec();
  const auto opened_namespace = plain_call(&v1::Directory::Stub::OpenNamespace, wanted);
  REQUIRE(opened_namespace);
  namespace_ = opened_namespace->namespace_id();
}

RawWorker::~RawWorker() {
  if (!link_) return;
  link_context_->TryCancel();
  link_->Finish();
}

void RawWorker::attach() {
  grpc::ClientContext context;
  set_deadline(context, kCallWithin);
  const auto stream = stub_->Reattach(&context);
  v1::ReattachRequest message;
  *message.mutable_hello()->mutable_caller() = caller();
  message.mutable_hello()->set_boot_id(digest('b'));
  REQUIRE(stream->Write(message));
  v1::ReattachResponse answer;
  REQUIRE(stream->Read(&answer));
  REQUIRE(answer.has_welcome());
  incarnation_ = answer.welcome().incarnation();
  message.mutable_end();
  REQUIRE(stream->Write(message));
  REQUIRE(stream->Read(&answer));
  REQUIRE(answer.has_done());
  stream->WritesDone();
  stream->Finish();
}

void RawWorker::open_link() {
  link_context_ = std::make_unique<grpc::ClientContext>();
  link_ = stub_->Link(link_context_.get());
  v1::LinkRequest hello;
  *hello.mutable_hello()->mutable_caller() = caller();
  REQUIRE(link_->Write(hello));
  v1::LinkResponse answer;
  REQUIRE(link_->Read(&answer));
  REQUIRE(answer.has_welcome());
}

v1::Caller RawWorker::caller() const {
  v1::Caller caller;
  caller.set_session(session_);
  caller.set_token(token_);
  caller.set_incarnation(incarnation_);
  return caller;
}

v1::NamespaceSpec RawWorker::namespace_spec() {
  v1::NamespaceSpec spec;
  spec.set_name("raw");
  spec.set_model("test-model@1");
  spec.set_dtype("bf16");
  spec.set_layers(32);
  spec.set_kv_heads(8);
  spec.set_head_dim(128);
  spec.set_storage_format("paged-nhd");
  spec.set_storage_version(1);
  spec.set_chunk_tokens(16);
  spec.set_digest_bytes(16);
  return spec;
}

v1::ReserveRequest RawWorker::reserve_request(uint64_t operation,
                                              const std::string& digests) const {
  v1::ReserveRequest request;
  request.set_operation(operation);
  request.set_namespace_id(namespace_);
  request.set_digests(digests);
  request.add_sizes(kPage);
  return request;
}

v1::CommitRequest RawWorker::commit_request(uint64_t operation,
                                            const std::vector<uint64_t>& replicas,
                                            uint64_t first_offset) const {
  v1::CommitRequest request;
  request.set_operation(operation);
  for (const uint64_t replica : replicas) {
    request.add_replicas(replica);
    request.add_offsets(first_offset);
    first_offset += kPage;
  }
  return request;
}

v1::AcquireRequest RawWorker::acquire_request(uint64_t operation,
                                              const std::string& digests) const {
  v1::AcquireRequest request;
  request.set_operation(operation);
  request.set_namespace_id(namespace_);
  request.set_digests(digests);
  return request;
}

Result<v1::ReserveResponse> RawWorker::reserve(const v1::ReserveRequest& request) {
  return call(&v1::Directory::Stub::Reserve, request);
}

Result<v1::CommitResponse> RawWorker::commit(const v1::CommitRequest& request) {
  return call(&v1::Directory::Stub::Commit, request);
}

Result<v1::AcquireResponse> RawWorker::acquire(const v1::AcquireRequest& request) {
  return call(&v1::Directory::Stub::Acquire, request);
}

Result<v1::AbortResponse> RawWorker::abort(const std::vector<uint64_t>& replicas) {
  v1::AbortRequest request;
  request.mutable_replicas()->Add(replicas.begin(), replicas.end());
  return call(&v1::Directory::Stub::Abort, request);
}

Result<v1::ReleaseResponse> RawWorker::release(const std::vector<uint64_t>& leases) {
  v1::ReleaseRequest request;
  request.mutable_leases()->Add(leases.begin(), leases.end());
  return call(&v1::Directory::Stub::Release, request);
}

uint32_t RawWorker::probe(const std::string& digests) {
  v1::ProbeRequest request;
  request.set_namespace_id(namespace_);
  request.set_digests(digests);
  const auto probed = call(&v1::Directory::Stub::Probe, request);
  REQUIRE(probed);
  return probed->usable_chunks();
}

}  // namespace berth::testing
