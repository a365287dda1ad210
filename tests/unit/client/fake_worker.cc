#include "tests/unit/client/fake_worker.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "common/descriptor_passing.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"
#include "common/unix_socket.h"

namespace berth::client::testing {
namespace {

constexpr uint64_t kPool = 31;
constexpr size_t kDigestBytes = 16;
const std::string kTicket(16, 't');
const std::string kToken(16, 's');

bool is_free(const UniqueFd& life) {
  const bool taken = ::flock(life.get(), LOCK_EX | LOCK_NB) == 0;
  if (taken) ::flock(life.get(), LOCK_UN);
  return taken;
}

}  // namespace

FakeWorker::FakeWorker(std::string socket, uint64_t incarnation)
    : socket_(std::move(socket)), incarnation_(incarnation), next_session_(incarnation * 1000) {
  pool_.reset(::memfd_create("berth-fake-pool", MFD_CLOEXEC));
  REQUIRE(::ftruncate(pool_.get(), static_cast<off_t>(kPoolBytes)) == 0);
  auto listener = listen_seqpacket(socket_ + ".fd", 0600);
  REQUIRE(listener);
  descriptor_listener_ = std::move(*listener);
  passer_ = std::thread([this] { pass_descriptors(); });
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  REQUIRE(server_);
}

FakeWorker::~FakeWorker() {
  {
    const std::lock_guard lock(mutex_);
    is_dead_ = true;
    if (stream_context_) stream_context_->TryCancel();
    changed_.notify_all();
  }
  server_->Shutdown(deadline_in({0}));
  ::shutdown(descriptor_listener_.get(), SHUT_RDWR);
  passer_.join();
  ::unlink(socket_.c_str());
  ::unlink((socket_ + ".fd").c_str());
}

// ---- Script -----------------------------------------------------------------------------------

Seen FakeWorker::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

void FakeWorker::await(const std::function<bool(const Seen&)>& condition) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return condition(seen_); });
}

void FakeWorker::script(const std::function<void(Script&)>& change) {
  const std::lock_guard lock(mutex_);
  change(script_);
}

void FakeWorker::push(const v1::JoinResponse& message) {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return stream_ != nullptr; });
  stream_->Write(message);
}

void FakeWorker::end_join() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return stream_ != nullptr; });
  stream_context_->TryCancel();
}

void FakeWorker::hold(const std::string& method) {
  const std::lock_guard lock(mutex_);
  held_ = method;
}

void FakeWorker::let_go() {
  const std::lock_guard lock(mutex_);
  held_.clear();
  changed_.notify_all();
}

void FakeWorker::refuse_next(const std::string& method, Reason reason, int times) {
  const std::lock_guard lock(mutex_);
  refusals_[method] = {reason, times};
}

grpc::Status FakeWorker::enter(Lock& lock, const std::string& method,
                               const v1::ClientCaller& caller) {
  seen_.calls.push_back(method);
  seen_.low_water = caller.operation_low_water();
  changed_.notify_all();
  changed_.wait(lock, [&] { return held_ != method || is_dead_; });
  if (is_dead_) return status_from_error({Reason::kUnavailable, "this worker is gone"});
  if (caller.worker_incarnation() != incarnation_)
    return status_from_error({Reason::kRejoin, "another worker process"});
  const bool needs_namespace = method == "Probe" || method == "BeginStore" || method == "Load";
  if (needs_namespace && !std::count(seen_.calls.begin(), seen_.calls.end(), "OpenNamespace"))
    return status_from_error({Reason::kUnknownNamespace, "not opened through this worker"});
  const auto refusal = refusals_.find(method);
  if (refusal == refusals_.end()) return grpc::Status::OK;
  const Reason reason = refusal->second.first;
  if (--refusal->second.second == 0) refusals_.erase(refusal);
  return status_from_error({reason, "as the test asked"});
}

// ---- Memory -----------------------------------------------------------------------------------

std::string FakeWorker::pool_bytes(uint64_t offset, size_t size_bytes) const {
  std::string bytes(size_bytes, '\0');
  REQUIRE(::pread(pool_.get(), bytes.data(), size_bytes, static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(size_bytes));
  return bytes;
}

void FakeWorker::write_pool(uint64_t offset, const std::string& bytes) {
  REQUIRE(::pwrite(pool_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(bytes.size()));
}

bool FakeWorker::is_life_free(size_t join) const {
  const std::lock_guard lock(mutex_);
  return is_free(lives_.at(join));
}

void FakeWorker::pass_descriptors() {
  while (true) {
    auto connection = accept_connection(descriptor_listener_.get());
    if (!connection) return;
    const auto ticket = receive_descriptors(connection->get());
    if (!ticket || ticket->payload != kTicket) continue;
    const std::lock_guard lock(mutex_);
    const int descriptors[] = {to_pass_.back().get(), pool_.get()};
    (void)send_descriptors(connection->get(), "life pool", descriptors);
    to_pass_.clear();  // from here on the lock is the client's alone
    connections_.push_back(std::move(*connection));
  }
}

// ---- Service ----------------------------------------------------------------------------------

v1::JoinResponse FakeWorker::make_welcome(const v1::JoinHello& hello) {
  char path[] = "/tmp/berth-fake-life-XXXXXX";
  UniqueFd life(::mkostemp(path, O_CLOEXEC));
  lives_.emplace_back(::open(path, O_RDWR | O_CLOEXEC));
  ::unlink(path);
  ::flock(life.get(), LOCK_EX | LOCK_NB);
  to_pass_.push_back(std::move(life));

  v1::JoinResponse response;
  v1::JoinWelcome& welcome = *response.mutable_welcome();
  welcome.set_version(1);
  welcome.set_client_session(hello.resume_session() ? hello.resume_session() : ++next_session_);
  welcome.set_token(kToken);
  welcome.set_worker_incarnation(incarnation_);
  welcome.set_descriptor_ticket(kTicket);
  welcome.set_worker_name("fake");
  welcome.mutable_limits()->set_batch_items_max(32);
  welcome.mutable_limits()->set_operations_max(64);
  v1::JoinPool& pool = *welcome.add_pools();
  pool.set_pool(kPool);
  pool.set_name("cpu");
  pool.set_map_bytes(kPoolBytes);
  pool.set_page_bytes(kPageBytes);
  pool.set_writable(true);
  return response;
}

grpc::Status FakeWorker::Join(Context* context,
                              grpc::ServerReaderWriter<v1::JoinResponse, v1::JoinRequest>* stream) {
  v1::JoinRequest request;
  if (!stream->Read(&request) || !request.has_hello()) return grpc::Status::CANCELLED;
  {
    const std::lock_guard lock(mutex_);
    seen_.hellos.push_back(request.hello());
    changed_.notify_all();
    const auto refusal = refusals_.find("Join");
    if (refusal != refusals_.end()) {
      const Error error{refusal->second.first, "as the test asked"};
      if (--refusal->second.second == 0) refusals_.erase(refusal);
      return status_from_error(error);
    }
    stream->Write(make_welcome(request.hello()));
  }
  while (stream->Read(&request)) {
    const std::lock_guard lock(mutex_);
    if (request.has_mapped()) {
      stream_ = stream;
      stream_context_ = context;
    }
    if (request.has_poisoned()) seen_.poisoned.push_back(request.poisoned().operation());
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  if (stream_ == stream) {
    stream_ = nullptr;
    stream_context_ = nullptr;
  }
  return grpc::Status::OK;
}

grpc::Status FakeWorker::OpenNamespace(Context*, const v1::WorkerOpenNamespaceRequest* request,
                                       v1::OpenNamespaceResponse* response) {
  Lock lock(mutex_);
  const grpc::Status status = enter(lock, "OpenNamespace", request->caller());
  response->set_namespace_id(7);
  response->set_fingerprint(std::string(16, 'f'));
  *response->mutable_spec() = request->spec();
  return status;
}

grpc::Status FakeWorker::Probe(Context*, const v1::WorkerProbeRequest* request,
                               v1::ProbeResponse* response) {
  Lock lock(mutex_);
  const grpc::Status status = enter(lock, "Probe", request->caller());
  response->set_usable_chunks(script_.chunks_present);
  response->set_classes(
      std::string(script_.chunks_present, static_cast<char>(v1::CHUNK_CLASS_L1_LOCAL)));
  response->set_miss_reason(v1::MISS_REASON_NOT_PRESENT);
  return status;
}

grpc::Status FakeWorker::BeginStore(Context*, const v1::BeginStoreRequest* request,
                                    v1::BeginStoreResponse* response) {
  Lock lock(mutex_);
  seen_.begun.push_back(request->operation());
  const grpc::Status status = enter(lock, "BeginStore", request->caller());
  if (!status.ok()) return status;
  v1::BeginStoreResponse& answer = stores_[request->operation()];
  if (answer.codes().empty()) {
    const size_t count = request->digests().size() / kDigestBytes;
    answer.set_codes(std::string(count, static_cast<char>(v1::STORE_CODE_GRANTED)));
    for (size_t i = 0; i < count; ++i) {
      answer.add_replicas(++next_replica_);
      answer.add_pools(kPool);
      answer.add_offsets(script_.offset_of_next);
      script_.offset_of_next += kPageBytes;
    }
  }
  *response = answer;
  return status;
}

grpc::Status FakeWorker::FinishStore(Context*, const v1::FinishStoreRequest* request,
                                     v1::FinishStoreResponse* response) {
  Lock lock(mutex_);
  seen_.finished.push_back(request->operation());
  const grpc::Status status = enter(lock, "FinishStore", request->caller());
  response->set_codes(script_.finish_codes.empty()
                          ? std::string(static_cast<size_t>(request->replicas_size()),
                                        static_cast<char>(v1::COMMIT_CODE_COMMITTED))
                          : script_.finish_codes);
  return status;
}

grpc::Status FakeWorker::AbortStore(Context*, const v1::AbortStoreRequest* request,
                                    v1::AbortStoreResponse*) {
  Lock lock(mutex_);
  const grpc::Status status = enter(lock, "AbortStore", request->caller());
  if (status.ok())
    seen_.aborted.insert(seen_.aborted.end(), request->replicas().begin(),
                         request->replicas().end());
  changed_.notify_all();
  return status;
}

grpc::Status FakeWorker::Load(Context*, const v1::LoadRequest* request,
                              v1::LoadResponse* response) {
  Lock lock(mutex_);
  seen_.loaded.push_back(request->operation());
  const grpc::Status status = enter(lock, "Load", request->caller());
  if (!status.ok()) return status;
  v1::LoadResponse& answer = loads_[request->operation()];
  if (answer.handle() == 0) {
    answer.set_handle(script_.chunks_present ? ++next_handle_ : 0);
    answer.set_state(v1::LOAD_STATE_COMPLETE);
    answer.set_chunks(script_.chunks_present);
    answer.set_classes(
        std::string(script_.chunks_present, static_cast<char>(v1::CHUNK_CLASS_L1_LOCAL)));
    answer.set_miss_reason(v1::MISS_REASON_NOT_PRESENT);
    for (uint32_t i = 0; i < script_.chunks_present; ++i) {
      answer.add_replicas(1 + i);
      answer.add_pools(script_.pool_of_loads != 0 ? script_.pool_of_loads : kPool);
      answer.add_offsets(script_.first_load_offset + i * kPageBytes);
      answer.add_sizes(kPageBytes);
    }
  }
  *response = answer;
  return status;
}

grpc::Status FakeWorker::Wait(Context*, const v1::WaitRequest* request,
                              v1::WaitResponse* response) {
  Lock lock(mutex_);
  response->set_state(v1::LOAD_STATE_COMPLETE);
  return enter(lock, "Wait", request->caller());
}

grpc::Status FakeWorker::Renew(Context*, const v1::WorkerRenewRequest* request,
                               v1::WorkerRenewResponse* response) {
  Lock lock(mutex_);
  const grpc::Status status = enter(lock, "Renew", request->caller());
  for (const uint64_t handle : request->handles())
    response->mutable_renewed()->push_back(
        std::count(script_.ended.begin(), script_.ended.end(), handle) ? '\0' : '\1');
  return status;
}

grpc::Status FakeWorker::Release(Context*, const v1::WorkerReleaseRequest* request,
                                 v1::WorkerReleaseResponse* response) {
  Lock lock(mutex_);
  const grpc::Status status = enter(lock, "Release", request->caller());
  if (status.ok())
    seen_.released.insert(seen_.released.end(), request->handles().begin(),
                          request->handles().end());
  response->set_released(std::string(static_cast<size_t>(request->handles_size()), '\1'));
  changed_.notify_all();
  return status;
}

grpc::Status FakeWorker::Leave(Context*, const v1::LeaveRequest* request, v1::LeaveResponse*) {
  Lock lock(mutex_);
  seen_.life_was_free_at_leave = is_free(lives_.back());
  return enter(lock, "Leave", request->caller());
}

}  // namespace berth::client::testing
