#include "worker/local/neighbours.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/descriptor_passing.h"
#include "common/log.h"
#include "common/os_error.h"
#include "common/unix_socket.h"

namespace berth::worker {
namespace {

constexpr int kRoundMillis = 1000;  // how often new neighbours are looked for
constexpr std::string_view kSuffix = ".share";

bool is_readable(const pollfd& entry) { return (entry.revents & ~POLLNVAL) != 0; }

// A descriptor of the same memory that cannot be mapped for writing.
Result<UniqueFd> read_only_copy(int descriptor) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  UniqueFd copy(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy) return refuse_os("open a pool for reading at " + path);
  return copy;
}

}  // namespace

Result<std::unique_ptr<Neighbours>> Neighbours::start(NeighboursOptions options, AgentHost& host,
                                                      LifeKeeper& keeper) {
  const std::string path = options.directory + "/" + options.worker_name + std::string(kSuffix);
  Result<UniqueFd> listener = listen_seqpacket(path, 0660);
  if (!listener) return tl::unexpected(listener.error());
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return refuse_os("make an eventfd");
  return std::unique_ptr<Neighbours>(
      new Neighbours(std::move(options), std::move(*listener), std::move(wake), host, keeper));
}

Neighbours::Neighbours(NeighboursOptions options, UniqueFd listener, UniqueFd wake, AgentHost& host,
                       LifeKeeper& keeper)
    : options_(std::move(options)),
      path_(options_.directory + "/" + options_.worker_name + std::string(kSuffix)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      host_(host),
      keeper_(keeper),
      thread_([this] { run(); }) {}

Neighbours::~Neighbours() { stop(); }

void Neighbours::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_thread();
  if (!thread_.joinable()) return;
  thread_.join();
  unlink(path_.c_str());
}

void Neighbours::wake_thread() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) log::warning("neighbours_not_woken");
}

// ---- What the agent wants done ----

void Neighbours::perform(Introduce& action) {
  {
    const std::lock_guard lock(mutex_);
    ends_all_ |= !action.session.valid();
    identity_ = std::move(action);
  }
  wake_thread();
}

void Neighbours::perform(LockExport& action) {
  const Result<std::string> life_name = keeper_.create();
  if (!life_name) log::warning("export_not_locked", {{"message", life_name.error().message}});
  host_.feed([&](Agent& agent, Time now) {
    agent.export_locked(action.peer, action.pool_slot, life_name.value_or(""), now);
  });
}

void Neighbours::perform(PassExport& action) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(action));
  }
  wake_thread();
}

void Neighbours::perform(DiscardLock& action) { keeper_.discard(action.life_name); }

void Neighbours::perform(DropImport& action) {
  std::shared_ptr<const ImportedPool> closed;  // outside of the lock
  const std::lock_guard lock(mutex_);
  const auto found = imports_.extract(action.import);
  if (!found.empty()) closed = found.mapped();
}

std::shared_ptr<const ImportedPool> Neighbours::find(ImportId import) {
  const std::lock_guard lock(mutex_);
  const auto found = imports_.find(import);
  return found == imports_.end() ? nullptr : found->second;
}

// ---- The thread ----

void Neighbours::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) break;
    }
    take_identity();
    pass_waiting();
    find_neighbours();
    std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Incoming& peer : incoming_) entries.push_back({peer.socket.get(), POLLIN, 0});
    for (const Outgoing& neighbour : outgoing_)
      entries.push_back({neighbour.socket.get(), POLLIN, 0});
    if (poll(entries.data(), entries.size(), kRoundMillis) <= 0) continue;
    if (is_readable(entries[0])) {
      uint64_t count = 0;
      if (read(wake_.get(), &count, sizeof count) < 0) log::warning("neighbours_wake_unread");
    }
    size_t at = 2;
    for (Incoming& peer : incoming_)
      if (is_readable(entries[at++]) && !greet(peer)) end(peer);
    for (Outgoing& neighbour : outgoing_)
      if (is_readable(entries[at++]) && !receive(neighbour)) end(neighbour);
    std::erase_if(incoming_, [](const Incoming& peer) { return !peer.socket; });
    std::erase_if(outgoing_, [](const Outgoing& neighbour) { return !neighbour.socket; });
    if (is_readable(entries[1])) accept_one();
  }
  for (Incoming& peer : incoming_) end(peer);
  for (Outgoing& neighbour : outgoing_) end(neighbour);
}

// Under another session nothing that was passed before is good. Neighbours that came before there
// was one are sent away as well when the agent says so: it has forgotten them.
void Neighbours::take_identity() {
  Introduce wanted;
  bool ends_all = false;
  {
    const std::lock_guard lock(mutex_);
    wanted = identity_;
    ends_all = std::exchange(ends_all_, false);
  }
  const bool is_same = wanted.session == known_as_.session && wanted.store_id == known_as_.store_id;
  if (is_same && !ends_all) return;
  if (ends_all || known_as_.session.valid()) {
    for (Incoming& peer : incoming_) end(peer);
    for (Outgoing& neighbour : outgoing_) end(neighbour);
    incoming_.clear();
    outgoing_.clear();
  }
  known_as_ = std::move(wanted);
}

void Neighbours::pass_waiting() {
  std::deque<PassExport> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const PassExport& what : waiting) {
    const auto peer = std::find_if(incoming_.begin(), incoming_.end(),
                                   [&](const Incoming& p) { return p.id == what.peer; });
    if (peer == incoming_.end()) {
      keeper_.discard(what.message.life_name());
    } else if (!pass(*peer, what)) {
      end(*peer);
      incoming_.erase(peer);
    }
  }
}

bool Neighbours::pass(Incoming& peer, const PassExport& what) {
  const auto copy = read_only_copy(options_.pool_descriptors[what.pool_slot]);
  if (!copy) {
    keeper_.discard(what.message.life_name());
    log::warning("pool_not_passed", {{"message", copy.error().message}});
    return false;
  }
  const std::optional<LifeLock> lock = keeper_.take(what.message.life_name());
  if (!lock) return false;  // discarded: this peer's connection is about to end
  const std::vector<int> descriptors{lock->descriptor(), copy->get()};
  const Result<> sent =
      send_descriptors(peer.socket.get(), what.message.SerializeAsString(), descriptors);
  if (!sent) log::warning("pool_not_passed", {{"message", sent.error().message}});
  return sent.has_value();
}

void Neighbours::accept_one() {
  Result<UniqueFd> socket = accept_connection(listener_.get());
  if (!socket) return log::warning("accept_failed", {{"message", socket.error().message}});
  if (incoming_.size() >= options_.neighbours_max) {
    return log::warning("neighbour_refused", {{"connections", incoming_.size()}});
  }
  // Nothing here waits for a peer: what is read has arrived, what is written fits its buffer.
  if (!set_socket_timeout(socket->get(), milliseconds(kRoundMillis))) return;
  incoming_.push_back({PeerId(), std::move(*socket)});
}

bool Neighbours::greet(Incoming& peer) {
  const Result<DescriptorMessage> message = receive_descriptors(peer.socket.get());
  v1::WorkerHello hello;
  if (!message || peer.id.valid() || !hello.ParseFromString(message->payload)) return false;
  peer.id = PeerId(++peers_made_);
  host_.feed([&](Agent& agent, Time now) { agent.peer_connected(peer.id, hello, now); });
  return true;
}

void Neighbours::end(Incoming& peer) {
  peer.socket.reset();
  if (!peer.id.valid()) return;
  host_.feed([&](Agent& agent, Time now) { agent.peer_ended(peer.id, now); });
}

void Neighbours::find_neighbours() {
  if (!known_as_.session.valid()) return;
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(options_.directory, failed)) {
    std::string name = file.path().filename().string();
    if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) continue;
    if (name == options_.worker_name + std::string(kSuffix)) continue;
    names.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    const bool is_known =
        std::any_of(outgoing_.begin(), outgoing_.end(),
                    [&](const Outgoing& neighbour) { return neighbour.name == name; });
    if (!is_known && outgoing_.size() < options_.neighbours_max) connect(name);
  }
}

// A socket that nobody listens at (any more) is tried again in the next round.
void Neighbours::connect(const std::string& name) {
  Result<UniqueFd> socket = connect_seqpacket(options_.directory + "/" + name);
  if (!socket || !set_socket_timeout(socket->get(), milliseconds(kRoundMillis))) return;
  v1::WorkerHello hello;
  hello.set_worker_name(options_.worker_name);
  hello.set_session(known_as_.session.value());
  hello.set_store_id(known_as_.store_id);
  if (!send_descriptors(socket->get(), hello.SerializeAsString(), {})) return;
  outgoing_.push_back({name, std::move(*socket), {}});
}

bool Neighbours::receive(Outgoing& neighbour) {
  Result<DescriptorMessage> message = receive_descriptors(neighbour.socket.get());
  v1::SharedPool shared;
  if (!message || message->descriptors.size() != 2 || !shared.ParseFromString(message->payload)) {
    return false;
  }
  const ImportId import(++imports_made_);
  {
    const std::lock_guard lock(mutex_);
    imports_[import] = std::make_shared<const ImportedPool>(
        ImportedPool{std::move(message->descriptors[0]), std::move(message->descriptors[1])});
  }
  neighbour.imports.push_back(import);
  host_.feed([&](Agent& agent, Time now) { agent.import_offered(import, shared, now); });
  return true;
}

void Neighbours::end(Outgoing& neighbour) {
  neighbour.socket.reset();
  for (const ImportId import : neighbour.imports) {
    host_.feed([&](Agent& agent, Time now) { agent.import_ended(import, now); });
  }
}

}  // namespace berth::worker
