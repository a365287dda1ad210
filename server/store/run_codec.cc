#include "server/store/run_codec.h"

#include <algorithm>

#include "berth/store/v1/records.pb.h"
#include "server/store/columns.h"
#include "server/store/record_messages.h"

namespace berth {
namespace {

constexpr size_t kChangeBytes = 3;  // index, state, why

const Replica& replica_of(const Mutation& mutation) { return std::get<Replica>(mutation.value); }

bool may_be_in_run(const Mutation& mutation) {
  if (!mutation.is_first_record) return false;
  const Replica* replica = std::get_if<Replica>(&mutation.value);
  return replica && !replica->in_reservation && replica->state == ReplicaState::kReady &&
         replica->why == Why::kNone;
}

bool read_digests(const store::v1::RunRecord& message, std::vector<Replica>& replicas) {
  const std::string_view digests = message.digests();
  const size_t width = digests.size() / replicas.size();
  if (width * replicas.size() != digests.size()) return false;
  for (size_t i = 0; i < replicas.size(); ++i)
    if (!read_digest(digests.substr(i * width, width), replicas[i].key.digest)) return false;
  return true;
}

}  // namespace

size_t run_length(std::span<const Mutation> mutations) {
  if (!may_be_in_run(mutations[0])) return 0;
  const Replica& first = replica_of(mutations[0]);
  const size_t count_max = std::min(mutations.size(), kRunReplicasMax);
  size_t count = 1;
  while (count < count_max && may_be_in_run(mutations[count])) {
    const Replica& next = replica_of(mutations[count]);
    if (next.id.value() - first.id.value() != count ||
        next.key.namespace_number != first.key.namespace_number)
      break;
    ++count;
  }
  return count;
}

struct RunCodec::Messages {
  store::v1::RunRecord run;
  store::v1::RunChangesRecord changes;
};

RunCodec::RunCodec() : messages_(std::make_unique<Messages>()) {}
RunCodec::~RunCodec() = default;

std::string_view RunCodec::encode(std::span<const Mutation> run) {
  store::v1::RunRecord& message = messages_->run;
  message.Clear();
  message.set_count(static_cast<uint32_t>(run.size()));
  message.set_namespace_id(replica_of(run[0]).key.namespace_number);
  size_t width = kDigestBytesMin;
  for (const Mutation& item : run) width = std::max(width, width_of(replica_of(item).key.digest));
  std::string& digests = *message.mutable_digests();
  for (const Mutation& item : run) digests.append(view_of(replica_of(item).key.digest, width));
  using Item = const Mutation&;
  write_column(run, *message.mutable_shards(), [](Item i) { return replica_of(i).key.shard; });
  write_column(run, *message.mutable_parts(), [](Item i) { return replica_of(i).key.part; });
  write_column(run, *message.mutable_pools(), [](Item i) { return replica_of(i).pool.value(); });
  write_column(run, *message.mutable_sizes(), [](Item i) { return replica_of(i).size_bytes; });
  message.mutable_steps()->Reserve(static_cast<int>(run.size()));
  Steps steps;
  for (const Mutation& item : run)
    message.mutable_steps()->AddAlreadyReserved(steps.to(replica_of(item).offset));
  value_.clear();
  message.AppendToString(&value_);
  return value_;
}

bool RunCodec::decode(uint64_t first, std::string_view value, std::vector<Replica>& replicas) {
  store::v1::RunRecord& message = messages_->run;
  replicas.clear();
  if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) return false;
  if (message.count() == 0 || message.count() > kRunReplicasMax ||
      first > UINT64_MAX - message.count())
    return false;
  const int count = static_cast<int>(message.count());
  if (message.steps_size() != count || !is_column(message.shards(), count) ||
      !is_column(message.parts(), count) || !is_column(message.pools(), count) ||
      !is_column(message.sizes(), count))
    return false;
  replicas.resize(message.count());
  Steps steps;
  for (int i = 0; i < count; ++i) {
    Replica& replica = replicas[static_cast<size_t>(i)];
    replica.id = ReplicaId(first + static_cast<uint64_t>(i));
    replica.pool = PoolId(value_at(message.pools(), i));
    replica.size_bytes = value_at(message.sizes(), i);
    replica.offset = steps.by(message.steps(i));
    replica.state = ReplicaState::kReady;
    if (!replica.pool.valid() || !read_key(message.namespace_id(), value_at(message.shards(), i),
                                           value_at(message.parts(), i), replica.key))
      return false;
  }
  return read_digests(message, replicas);
}

std::string_view RunCodec::encode_changes(const Run& run) {
  store::v1::RunChangesRecord& message = messages_->changes;
  message.Clear();
  std::string& gone = *message.mutable_gone();
  gone.assign((run.count + 7) / 8, '\0');
  for (size_t i = 0; i < run.count; ++i)
    if (run.gone.test(i)) gone[i / 8] = static_cast<char>(gone[i / 8] | 1 << i % 8);
  while (!gone.empty() && gone.back() == '\0') gone.pop_back();
  std::string& changed = *message.mutable_changed();
  for (const Run::Change& change : run.changes) {
    changed.push_back(static_cast<char>(change.index));
    changed.push_back(static_cast<char>(change.state));
    changed.push_back(static_cast<char>(change.why));
  }
  value_.clear();
  message.AppendToString(&value_);
  return value_;
}

bool RunCodec::decode_changes(std::string_view value, Run& run) {
  store::v1::RunChangesRecord& message = messages_->changes;
  if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) return false;
  const std::string& gone = message.gone();
  for (size_t i = 0; i < 8 * gone.size(); ++i) {
    if ((static_cast<uint8_t>(gone[i / 8]) >> i % 8 & 1) == 0) continue;
    if (i >= run.count) return false;
    run.gone.set(i);
  }
  const std::string& changed = message.changed();
  if (changed.size() % kChangeBytes != 0) return false;
  for (size_t at = 0; at < changed.size(); at += kChangeBytes) {
    Run::Change change;
    change.index = static_cast<uint8_t>(changed[at]);
    if (!read_state(static_cast<uint8_t>(changed[at + 1]), static_cast<uint8_t>(changed[at + 2]),
                    change.state, change.why))
      return false;
    if (change.index >= run.count || run.gone.test(change.index) || run.changed.test(change.index))
      return false;
    run.change(change.index, change.state, change.why);
  }
  return true;
}

}  // namespace berth
