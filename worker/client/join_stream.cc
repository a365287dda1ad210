#include "worker/client/join_stream.h"

#include <utility>
#include <vector>

#include "common/descriptor_passing.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"
#include "common/unix_socket.h"

namespace berth::client {
namespace {

constexpr uint32_t kProtocolVersion = 1;
constexpr uint32_t kProtocolVersionOldest = 1;
constexpr size_t kOperationsDefault = 1024;
constexpr int kPoolsMax = 256;  // of one worker; more is a broken welcome
constexpr size_t kTokenBytes = 16;

Result<> check_welcome(const v1::JoinWelcome& welcome) {
  if (welcome.client_session() == 0 || welcome.token().size() != kTokenBytes ||
      welcome.worker_incarnation() == 0 || welcome.descriptor_ticket().size() != kTokenBytes ||
      welcome.pools_size() > kPoolsMax)
    return refuse(Reason::kInternal, "the worker's welcome lacks a session, token or ticket");
  return {};
}

std::vector<PoolAnnouncement> announced_pools(const v1::JoinWelcome& welcome) {
  std::vector<PoolAnnouncement> pools;
  for (const v1::JoinPool& pool : welcome.pools())
    pools.push_back({PoolId(pool.pool()), pool.name(), pool.map_bytes(), pool.writable()});
  return pools;
}

}  // namespace

JoinStream::~JoinStream() {
  if (!stream_) return;
  context_.TryCancel();
  stream_->Finish();
}

Result<std::shared_ptr<Attachment>> JoinStream::open(const std::shared_ptr<Session>& previous) {
  const Result<Address> address = parse_address("socket", "unix:" + options_.socket);
  if (!address) return tl::unexpected(address.error());
  // A connection of its own: one that failed would make the next join wait for gRPC's back-off.
  const auto channel = make_channel("socket", *address, {.own_connection = true});
  if (!channel) return tl::unexpected(channel.error());
  stub_ = v1::Worker::NewStub(*channel);
  stream_ = stub_->Join(&context_);
  const Result<v1::JoinWelcome> welcome = greet(previous);
  if (!welcome) return tl::unexpected(welcome.error());
  auto attachment = attach(*welcome, previous);
  if (!attachment) return attachment;
  v1::JoinRequest mapped;
  mapped.mutable_mapped();
  if (!stream_->Write(mapped)) return tl::unexpected(why_it_ended());
  return attachment;
}

Result<v1::JoinWelcome> JoinStream::greet(const std::shared_ptr<Session>& previous) {
  v1::JoinRequest request;
  v1::JoinHello* hello = request.mutable_hello();
  hello->mutable_versions()->set_newest(kProtocolVersion);
  hello->mutable_versions()->set_oldest(kProtocolVersionOldest);
  hello->set_engine_id(options_.engine_id);
  if (previous) {
    hello->set_resume_session(previous->id().value());
    hello->set_resume_token(previous->token());
  }
  v1::JoinResponse response;
  if (!stream_->Write(request) || !stream_->Read(&response)) return tl::unexpected(why_it_ended());
  if (!response.has_welcome())
    return refuse(Reason::kInternal, "the worker's first message was not a welcome");
  const Result<> checked = check_welcome(response.welcome());
  if (!checked) return tl::unexpected(checked.error());
  return response.welcome();
}

Result<std::shared_ptr<Attachment>> JoinStream::attach(const v1::JoinWelcome& welcome,
                                                       const std::shared_ptr<Session>& previous) {
  auto attachment = std::make_shared<Attachment>();
  if (const Result<> received = receive_pools(welcome, *attachment); !received)
    return tl::unexpected(received.error());
  const SessionId id(welcome.client_session());
  const size_t operations_max =
      welcome.limits().operations_max() ? welcome.limits().operations_max() : kOperationsDefault;
  attachment->session = previous && previous->id() == id
                            ? previous
                            : std::make_shared<Session>(id, welcome.token(), operations_max);
  attachment->stub = std::move(stub_);
  attachment->worker_incarnation = welcome.worker_incarnation();
  attachment->worker_name = welcome.worker_name();
  attachment->batch_items_max = welcome.limits().batch_items_max();
  attachment->token = welcome.token();
  attachment->operation_used = welcome.operation_low_water();
  return attachment;
}

Result<> JoinStream::receive_pools(const v1::JoinWelcome& welcome, Attachment& attachment) {
  Result<UniqueFd> connected = connect_seqpacket(options_.socket + ".fd");
  if (!connected) return tl::unexpected(connected.error());
  descriptor_socket_ = std::move(*connected);
  const int socket = descriptor_socket_.get();
  if (const Result<> set = set_socket_timeout(socket, options_.join_deadline); !set)
    return tl::unexpected(set.error());
  if (const Result<> sent = send_descriptors(socket, welcome.descriptor_ticket(), {}); !sent)
    return tl::unexpected(sent.error());

  const size_t wanted = 1 + static_cast<size_t>(welcome.pools_size());
  std::vector<UniqueFd> received;
  while (received.size() < wanted) {
    Result<DescriptorMessage> message = receive_descriptors(socket);
    if (!message) return tl::unexpected(message.error());
    for (UniqueFd& descriptor : message->descriptors) received.push_back(std::move(descriptor));
    if (message->descriptors.empty() || received.size() > wanted)
      return refuse(Reason::kInternal,
                    "the worker sent another number of descriptors than it announced");
  }
  attachment.life = std::make_shared<const UniqueFd>(std::move(received.front()));
  Result<PoolMaps> maps = PoolMaps::map(attachment.life, announced_pools(welcome),
                                        std::span<const UniqueFd>(received).subspan(1));
  if (!maps) return tl::unexpected(maps.error());
  attachment.maps = std::make_shared<const PoolMaps>(std::move(*maps));
  return {};
}

Result<PoolMapping> JoinStream::fetch(const v1::JoinPoolAdded& added) {
  Result<UniqueFd> socket = connect_seqpacket(options_.socket + ".fd");
  if (!socket) return tl::unexpected(socket.error());
  if (const Result<> set = set_socket_timeout(socket->get(), options_.control_deadline); !set)
    return tl::unexpected(set.error());
  if (const Result<> sent = send_descriptors(socket->get(), added.descriptor_ticket(), {}); !sent)
    return tl::unexpected(sent.error());
  Result<DescriptorMessage> message = receive_descriptors(socket->get());
  if (!message) return tl::unexpected(message.error());
  if (message->descriptors.size() != 2)
    return refuse(Reason::kInternal, "the worker sent another number of descriptors than two");
  const v1::JoinPool& pool = added.pool();
  return PoolMapping::map_imported({PoolId(pool.pool()), pool.name(), pool.map_bytes(), false},
                                   message->descriptors[1].get(),
                                   std::move(message->descriptors[0]));
}

std::optional<v1::JoinResponse> JoinStream::read() {
  v1::JoinResponse response;
  if (!stream_->Read(&response)) return std::nullopt;
  return response;
}

void JoinStream::send_poisoned(OperationNumber operation) {
  v1::JoinRequest request;
  request.mutable_poisoned()->set_operation(operation);
  stream_->Write(request);  // a broken stream shows at the next read
}

Error JoinStream::why_it_ended() {
  const grpc::Status status = stream_->Finish();
  stream_.reset();
  if (status.ok()) return {Reason::kUnavailable, "the worker ended the join"};
  return error_from_status(status);
}

}  // namespace berth::client
