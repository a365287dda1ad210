// A change as a value: a record in its new form, or the word that it is forgotten. Handlers make
// mutations in a draft, the store makes them durable, Directory::install applies them; recovery
// reads the same mutations back.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "server/directory/records.h"

namespace berth {

// ---- Records that are never written to disk
// ----------------------------------------------------------

// Whether a worker is there. Rebuilt from nothing after a restart: every session starts detached.
enum class Attachment : uint8_t { kDetached, kReattaching, kAttached };
inline constexpr PoolId kEveryPoolSearched{
    UINT64_MAX};  // Presence::cursor_pool: every pool was searched
struct Presence {
  SessionId session;
  Attachment attachment = Attachment::kDetached;
  bool silent = false;  // attached, but its heartbeats are overdue: hidden, nothing freed
  bool heartbeat_known = false;
  Time heartbeat;
  // Re-attach, after the end marker: where the search for replicas that the ledger lacks goes on.
  PoolId cursor_pool;
  ReplicaId cursor_replica;
  uint64_t dropped = 0;
  std::vector<SessionId>
      unknown_clients;  // named by the worker, fenced here: it is told when its Link is up
  Time asked;           // when unanswered asks were last repeated
  // A round of repeated reclaims goes on behind this replica.
  bool is_asking = false;
  PoolId asked_pool;
  ReplicaId asked_replica;
  // The leases of its clients are all known here: it was opened, or finished a re-attach, since the
  // server started.
  bool leases_stated = false;
};

// What an owner last said about a pool.
struct PoolReport {
  PoolId pool;
  uint64_t writing_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t largest_hole_bytes = 0;
  uint64_t pinned_bytes = 0;
  uint64_t spans_out = 0;
};

// The owner named this replica or lease in the re-attach that made this incarnation.
struct SeenReplica {
  ReplicaId replica;
  Incarnation incarnation = 0;
};
struct SeenLease {
  LeaseId lease;
  Incarnation incarnation = 0;
};

// ---- The store itself
// ----------------------------------------------------------------------------------

struct Meta {
  StoreId store_id;
  Epoch epoch = 0;
};

// ---- Keys
// -----------------------------------------------------------------------------------------------

enum class RecordKind : uint8_t {
  kMeta,
  kNamespace,
  kSession,
  kPool,
  kReplica,
  kReservation,
  kLease,
  kOperation,
  kJob,
  kPin,
  kEvictionSetting,
  kPresence,  // from here on: soft
  kPoolReport,
  kSeenReplica,
  kSeenLease,
};
constexpr bool is_durable(RecordKind kind) { return kind < RecordKind::kPresence; }

struct RecordKey {
  RecordKind kind = RecordKind::kMeta;
  uint64_t first = 0;
  uint64_t second = 0;  // operations: the number
  friend auto operator<=>(const RecordKey&, const RecordKey&) = default;
};

template <class R>
struct RecordTraits;
#define BERTH_RECORD(Type, IdType, field)                                         \
  template <>                                                                     \
  struct RecordTraits<Type> {                                                     \
    using Key = IdType;                                                           \
    static RecordKey key(Key id) { return {RecordKind::k##Type, id.value(), 0}; } \
    static RecordKey key_of(const Type& record) { return key(record.field); }     \
  }
BERTH_RECORD(Namespace, NamespaceId, id);
BERTH_RECORD(Session, SessionId, id);
BERTH_RECORD(Pool, PoolId, id);
BERTH_RECORD(Replica, ReplicaId, id);
BERTH_RECORD(Reservation, ReplicaId, first);
BERTH_RECORD(Lease, LeaseId, id);
BERTH_RECORD(Job, JobId, id);
BERTH_RECORD(Pin, ReplicaId, replica);
BERTH_RECORD(Presence, SessionId, session);
BERTH_RECORD(PoolReport, PoolId, pool);
BERTH_RECORD(SeenReplica, ReplicaId, replica);
BERTH_RECORD(SeenLease, LeaseId, lease);
#undef BERTH_RECORD

struct OperationKey {
  SessionId session;
  OperationNumber number = 0;
  friend auto operator<=>(const OperationKey&, const OperationKey&) = default;
};
template <>
struct RecordTraits<Operation> {
  using Key = OperationKey;
  static RecordKey key(Key k) { return {RecordKind::kOperation, k.session.value(), k.number}; }
  static RecordKey key_of(const Operation& o) { return key({o.session, o.number}); }
};

struct MetaKey {};
template <>
struct RecordTraits<Meta> {
  using Key = MetaKey;
  static RecordKey key(Key) { return {RecordKind::kMeta, 0, 0}; }
  static RecordKey key_of(const Meta&) { return key({}); }
};

struct EvictionSettingKey {};
template <>
struct RecordTraits<EvictionSetting> {
  using Key = EvictionSettingKey;
  static RecordKey key(Key) { return {RecordKind::kEvictionSetting, 0, 0}; }
  static RecordKey key_of(const EvictionSetting&) { return key({}); }
};

template <class R>
using KeyOf = typename RecordTraits<R>::Key;

// ---- The change
// ------------------------------------------------------------------------------------------

struct Forgotten {};

// A record that is large and seldom written lies aside, so that mutations, of which a batch has
// thousands, are no larger than an answer is.
template <class R>
class Aside {
 public:
  Aside(R record) : record_(std::make_unique<R>(std::move(record))) {}  // NOLINT: as good as R
  Aside(const Aside& other) : Aside(*other.record_) {}
  Aside(Aside&&) noexcept = default;
  Aside& operator=(Aside other) noexcept {
    record_ = std::move(other.record_);
    return *this;
  }
  ~Aside() = default;

  const R& operator*() const { return *record_; }
  R& operator*() { return *record_; }

 private:
  std::unique_ptr<R> record_;
};
template <class R>
inline constexpr bool kLiesAside = std::is_same_v<R, Namespace> || std::is_same_v<R, Session> ||
                                   std::is_same_v<R, Pool> || std::is_same_v<R, Presence>;

using RecordValue = std::variant<Forgotten, Meta, Aside<Namespace>, Aside<Session>, Aside<Pool>,
                                 Replica, Reservation, Lease, Operation, Job, Pin, EvictionSetting,
                                 Aside<Presence>, PoolReport, SeenReplica, SeenLease>;

// As std::get_if of the record itself, wherever it lies.
template <class R>
const R* record_if(const RecordValue& value) {
  if constexpr (kLiesAside<R>) {
    const auto* aside = std::get_if<Aside<R>>(&value);
    return aside ? &**aside : nullptr;
  } else {
    return std::get_if<R>(&value);
  }
}
template <class R>
R* record_if(RecordValue& value) {
  return const_cast<R*>(record_if<R>(std::as_const(value)));
}

// visit(record), or visit(Forgotten{}).
template <class Visit>
decltype(auto) visit_record(const RecordValue& value, Visit visit) {
  const auto unwrap = [&]<class R>(const R& record) -> decltype(auto) {
    if constexpr (requires { *record; })
      return visit(*record);
    else
      return visit(record);
  };
  return std::visit(unwrap, value);
}

struct Mutation {
  RecordKey key;
  RecordValue value;
  // What the draft knows of a replica, so that nobody has to look it up again.
  uint32_t slot = UINT32_MAX;    // where it lay when this was decided; none: nowhere, or not known
  bool is_first_record = false;  // put, and the store has no record of it: it was an open item
};

template <class R>
Mutation put_of(R record) {
  const RecordKey key = RecordTraits<R>::key_of(record);
  return {.key = key, .value = std::move(record)};
}

// The open items of a reservation, which are its record's and have none of their own.
std::vector<Replica> replicas_of(const Reservation& reservation);
// What the store reads back. Reservations come with the replicas of their open items, made again.
std::vector<Mutation> expand(const Reservation& reservation);

}  // namespace berth
