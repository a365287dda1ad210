#include "tests/bench/rpc/member.h"

#include <algorithm>

#include "common/random.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"
#include "server/rpc/fields.h"
#include "tests/bench/core/objects.h"

namespace berth::bench {
namespace {

constexpr Duration kSetUpWithin = seconds(120);
// Answers that wait for a heartbeat: well below the server's bound of 1024.
constexpr uint64_t kAnswersUntold = 128;
// Nominal: no memory lies behind it, and pages are never used twice.
constexpr uint64_t kPoolBytes = uint64_t{1} << 44;
constexpr uint64_t kLedgerRowsMax = 4096;  // of one chunk
// Objects that come and go are numbered from here.
constexpr uint64_t kPassingFirst = uint64_t{1} << 40;

Error with_step(const std::string& step, Error error) {
  error.message = step + ": " + error.message;
  return error;
}

void set_versions(v1::ProtocolVersions* versions) {
  versions->set_newest(1);
  versions->set_oldest(1);
}

v1::NamespaceSpec namespace_spec(const std::string& name) {
  v1::NamespaceSpec spec;
  spec.set_name(name);
  spec.set_model("bench@1");
  spec.set_dtype("bf16");
  spec.set_chunk_tokens(256);
  spec.set_digest_bytes(static_cast<uint32_t>(kDigestBytes));
  return spec;
}

template <class Request, class Response>
Result<Response> call(v1::Directory::Stub& stub, const std::string& step,
                      grpc::Status (v1::Directory::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
                      const Request& request) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  set_deadline(context, kSetUpWithin);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return tl::unexpected(with_step(step, error_from_status(status)));
  return response;
}

}  // namespace

Result<std::unique_ptr<Member>> Member::attach(EventLoop& loop, const MemberSpec& spec) {
  std::unique_ptr<Member> member(new Member(loop, spec));
  const auto channel = make_channel("server", spec.server, {.own_connection = true});
  if (!channel) return tl::unexpected(channel.error());
  member->stub_ = v1::Directory::NewStub(*channel);
  for (const auto step :
       {&Member::open_session, &Member::reattach, &Member::open_link, &Member::open_rest})
    if (const Result<> done = (member.get()->*step)(); !done) {
      member->leave_link();
      return tl::unexpected(done.error());
    }
  return member;
}

Result<> Member::open_session() {
  v1::OpenSessionRequest open;
  set_versions(open.mutable_versions());
  open.set_role(v1::ROLE_WORKER);
  open.set_request_token(rpc::bytes_of(random_id128()));
  open.set_worker_name("bench-" + std::to_string(spec_.number));
  open.set_node("bench-" + std::to_string(spec_.number));
  open.set_boot_id(std::string(16, 'b'));
  const auto opened = call(*stub_, "open a session", &v1::Directory::Stub::OpenSession, open);
  if (!opened) return tl::unexpected(opened.error());
  caller_.set_session(opened->session());
  caller_.set_token(opened->token());
  caller_.set_incarnation(opened->incarnation());
  return {};
}

Result<> Member::reattach() {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  set_deadline(context, kSetUpWithin);
  const auto stream = stub_->Reattach(&context);
  const auto broken = [&] {
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    return tl::unexpected(with_step("re-attach", error_from_status(status)));
  };
  v1::ReattachRequest request;
  v1::ReattachResponse response;
  *request.mutable_hello()->mutable_caller() = caller_;
  request.mutable_hello()->set_boot_id(std::string(16, 'b'));
  if (!stream->Write(request) || !stream->Read(&response)) return broken();
  {
    const std::lock_guard lock(loop_.mutex());  // flows may go on meanwhile
    caller_.set_incarnation(response.welcome().incarnation());
  }
  for (const Run& run : ledger_)
    for (uint64_t at = 0; at < run.count; at += kLedgerRowsMax) {
      v1::LedgerChunk& chunk = *request.mutable_chunk();
      chunk.Clear();
      chunk.set_pool(pool_);
      chunk.set_namespace_fingerprint(population_fingerprint_);
      chunk.set_digest_bytes(static_cast<uint32_t>(kDigestBytes));
      const uint64_t count = std::min(kLedgerRowsMax, run.count - at);
      append_digests(*chunk.mutable_digests(), spec_.number, run.first_object + at, count);
      for (uint64_t i = at; i < at + count; ++i) {
        chunk.add_replicas(run.first_replica + i);
        chunk.add_shards(0);
        chunk.add_parts(0);
        chunk.add_offsets(run.first_offset + i * kPageBytes);
        chunk.add_sizes(kPageBytes);
        chunk.add_states(v1::LEDGER_STATE_SEALED);
      }
      if (!stream->Write(request) || !stream->Read(&response)) return broken();
    }
  request.mutable_end();
  if (client_ != 0) request.mutable_end()->add_clients(client_);
  if (!stream->Write(request) || !stream->Read(&response) || !response.has_done()) return broken();
  stream->WritesDone();
  if (const grpc::Status status = stream->Finish(); !status.ok())
    return tl::unexpected(with_step("re-attach", error_from_status(status)));
  return {};
}

Result<> Member::open_link() {
  std::future<Result<>> welcome;
  {
    const std::lock_guard lock(loop_.mutex());
    welcomed_ = {};
    welcome = welcomed_.get_future();
    awaits_welcome_ = true;
    link_ended_.emplace();
    *hello_.mutable_hello()->mutable_caller() = caller_;
    link_.start(loop_, *stub_, &v1::Directory::Stub::PrepareAsyncLink);
    link_.write(hello_);
  }
  return welcome.get();
}

// Its events need the member.
void Member::leave_link() {
  std::future<void> ended;
  {
    const std::lock_guard lock(loop_.mutex());
    if (!link_ended_) return;
    ended = link_ended_->get_future();
    link_.cancel();
  }
  ended.wait();
}

Result<> Member::open_rest() {
  v1::RegisterPoolRequest pool;
  *pool.mutable_caller() = caller_;
  v1::PoolSpec& spec = *pool.mutable_spec();
  spec.set_name("cpu");
  spec.set_medium(v1::MEDIUM_CPU);
  spec.set_tier(v1::TIER_L1);
  spec.set_scope(v1::SCOPE_HOST);
  spec.set_page_bytes(kPageBytes);
  spec.set_capacity_bytes(kPoolBytes);
  spec.set_backing_bytes(kPoolBytes);
  spec.set_budget_bytes(spec_.budget_bytes);
  const auto registered = call(*stub_, "register a pool", &v1::Directory::Stub::RegisterPool, pool);
  if (!registered) return tl::unexpected(registered.error());
  pool_ = registered->pool();

  const auto population = open_namespace(spec_.population_namespace, &population_fingerprint_);
  if (!population) return tl::unexpected(population.error());
  population_namespace_ = *population;
  std::string not_needed;
  const auto store = open_namespace(kStoreNamespace, &not_needed);
  if (!store) return tl::unexpected(store.error());
  store_namespace_ = *store;

  v1::OpenSessionRequest client;
  set_versions(client.mutable_versions());
  client.set_role(v1::ROLE_CLIENT);
  *client.mutable_caller() = caller_;
  client.set_request_token(rpc::bytes_of(random_id128()));
  client.set_engine_id("bench-engine-" + std::to_string(spec_.number));
  client.set_life_name("bench-" + std::to_string(spec_.number) + "-c1.life");
  const auto joined = call(*stub_, "open a client", &v1::Directory::Stub::OpenSession, client);
  if (!joined) return tl::unexpected(joined.error());
  client_ = joined->session();
  return {};
}

Result<uint64_t> Member::open_namespace(const std::string& name, std::string* fingerprint) {
  v1::OpenNamespaceRequest open;
  *open.mutable_spec() = namespace_spec(name);
  const auto opened = call(*stub_, "open a namespace", &v1::Directory::Stub::OpenNamespace, open);
  if (!opened) return tl::unexpected(opened.error());
  *fingerprint = opened->fingerprint();
  return opened->namespace_id();
}

Result<> Member::attach_again() {
  if (const Result<> attached = reattach(); !attached) return attached;
  return open_link();
}

void Member::answered(uint64_t operation) {
  operations_.answered(operation);
  if (operations_.low() - low_water_told_ >= kAnswersUntold) tell_low_water();
}

uint64_t Member::take_pages(uint64_t count) {
  const uint64_t offset = pages_ * kPageBytes;
  pages_ = (pages_ + count) % (kPoolBytes / kPageBytes / 2);
  return offset;
}

uint64_t Member::take_objects(Objects kind, uint64_t count) {
  uint64_t& next = kind == Objects::kPopulation ? objects_ : passing_objects_;
  const uint64_t first = next;
  next += count;
  return kind == Objects::kPopulation ? first : kPassingFirst + first;
}

void Member::committed(uint64_t first_object, uint64_t first_replica, uint64_t first_offset,
                       uint64_t count) {
  ledger_.push_back({first_object, first_replica, first_offset, count});
  population_ += count;
}

}  // namespace berth::bench
