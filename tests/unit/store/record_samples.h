// Records to store: random ones for properties, and whether two are the same. same() names every
// member by structured binding, so that a record that gets a member does not compile here until the
// codec's test knows it.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "server/directory/mutation.h"

namespace berth::testing {

class RecordSamples {
 public:
  explicit RecordSamples(uint64_t seed) : random_(seed) {}

  uint64_t number() { return random_() >> (random_() % 64); }
  uint32_t number32() { return static_cast<uint32_t>(number()); }
  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool flag() { return random_() % 2 == 0; }
  Id128 id128() { return flag() ? Id128{random_(), random_()} : Id128{}; }
  template <class IdType>
  IdType id() {
    return IdType(1 + number() / 2);
  }
  std::string text() {
    std::string out(below(20), '\0');
    for (char& c : out) c = static_cast<char>('a' + below(26));
    return out;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> out(below(4));
    for (std::string& t : out) t = text();
    return out;
  }
  template <class Enum>
  Enum one_of(std::initializer_list<Enum> values) {
    return *(values.begin() + below(values.size()));
  }

  ObjectKey key(uint32_t namespace_number, size_t digest_bytes) {
    ObjectKey out;
    for (size_t i = 0; i < digest_bytes; ++i)
      out.digest.bytes[i] = static_cast<uint8_t>(below(8) == 0 ? 0 : random_());
    out.namespace_number = namespace_number;
    out.shard = static_cast<uint16_t>(number());
    out.part = static_cast<uint16_t>(number());
    return out;
  }
  size_t digest_bytes() { return kDigestBytesMin + below(kDigestBytesMax - kDigestBytesMin + 1); }

  Namespace a_namespace() {
    Namespace n;
    n.id = id<NamespaceId>();
    n.spec = {text(),     text(),     text(),     text(),     text(),     text(),
              number32(), number32(), number32(), text(),     number32(), number32(),
              number32(), number32(), number32(), number32(), number32()};
    n.fingerprint = id128();
    n.quota_bytes = number();
    n.evicted_below = flag() ? id<ReplicaId>() : ReplicaId();
    return n;
  }
  Session a_session() {
    return {id<SessionId>(), one_of({Role::kWorker, Role::kClient}),
            id128(),         id128(),
            text(),          text(),
            id128(),         number32(),
            id<SessionId>(), text(),
            texts(),         texts(),
            texts(),         number(),
            flag(),          number32(),
            number()};
  }
  Pool a_pool() {
    Pool p;
    p.id = id<PoolId>();
    p.spec = {text(),
              one_of({Medium::kCpu, Medium::kCxl, Medium::kSsd}),
              one_of({Tier::kL1, Tier::kL2}),
              one_of({Scope::kProcess, Scope::kHost, Scope::kDomain}),
              text(),
              text(),
              number(),
              1 + number() / 2,
              number(),
              number(),
              number()};
    p.owner = flag() ? id<SessionId>() : SessionId();
    p.owner_name = text();
    p.node = text();
    p.boot_id = id128();
    p.state =
        one_of({PoolState::kOpen, PoolState::kClosing, PoolState::kGone, PoolState::kDraining});
    p.importers = texts();
    if (flag())
      p.exports.push_back({.importer = id<SessionId>(),
                           .worker = text(),
                           .life_name = text(),
                           .imported = flag(),
                           .unsure = flag()});
    return p;
  }
  Replica a_replica() {
    Replica r;
    r.id = id<ReplicaId>();
    r.key = key(1 + number32() / 2, digest_bytes());
    r.pool = id<PoolId>();
    r.offset = number();
    r.size_bytes = number();
    r.state = one_of({ReplicaState::kReady, ReplicaState::kRetiring, ReplicaState::kQuarantined});
    r.why = static_cast<Why>(below(8));
    return r;
  }
  Reservation a_reservation() {
    Reservation r;
    r.first = id<ReplicaId>();
    r.session = id<SessionId>();
    r.operation = number();
    r.granted = 1 + static_cast<uint32_t>(below(20));
    r.deadline = Time{static_cast<int64_t>(number() / 2)};
    r.write_within = Duration{static_cast<int64_t>(number() / 2)};
    r.quarantined = flag();
    const uint32_t in_namespace = 1 + number32() / 2;
    const size_t bytes = digest_bytes();
    for (uint32_t index = 0; index < r.granted; ++index)
      if (flag()) r.items.push_back({index, key(in_namespace, bytes), id<PoolId>(), number()});
    return r;
  }
  Lease a_lease() {
    Lease l;
    l.id = id<LeaseId>();
    l.session = id<SessionId>();
    l.operation = number();
    l.taken = Time{static_cast<int64_t>(number() / 2)};
    l.ttl = Duration{static_cast<int64_t>(number() / 2)};
    l.expires = Time{static_cast<int64_t>(number() / 2)};
    l.revoking = flag();
    for (uint64_t i = below(5); i > 0; --i) l.replicas.push_back(id<ReplicaId>());
    return l;
  }
  Operation an_operation() {
    Operation o;
    o.session = id<SessionId>();
    o.number = number();
    o.kind = one_of({OperationKind::kReserve, OperationKind::kCommit, OperationKind::kAcquire});
    o.content_hash = random_();
    for (uint64_t i = below(9); i > 0; --i) o.codes.push_back(static_cast<uint8_t>(below(256)));
    o.first = flag() ? id<ReplicaId>() : ReplicaId();
    for (uint64_t i = below(5); i > 0; --i) o.pools.push_back(id<PoolId>());
    o.lease = flag() ? id<LeaseId>() : LeaseId();
    o.miss = static_cast<MissReason>(below(10));
    return o;
  }
  Job a_job() {
    return {id<JobId>(),
            one_of({JobKind::kDropPool, JobKind::kEndSession, JobKind::kClosePool,
                    JobKind::kDrainPool, JobKind::kEvictNamespace, JobKind::kTrimPool}),
            id<PoolId>(),
            id<SessionId>(),
            id<NamespaceId>(),
            number(),
            number(),
            number()};
  }
  Pin a_pin() {
    return {id<ReplicaId>(), one_of({PinKind::kSoft, PinKind::kHard}),
            Time{static_cast<int64_t>(number() / 2)}};
  }
  EvictionSetting an_eviction_setting() {
    EvictionSetting s;
    s.kind = one_of({policy::EvictionKind::kLru, policy::EvictionKind::kS3Fifo,
                     policy::EvictionKind::kLfuDa, policy::EvictionKind::kAdaptive});
    s.high_permille = static_cast<uint32_t>(500 + below(501));
    s.low_permille = static_cast<uint32_t>(1 + below(499));
    return s;
  }

  // One of each durable kind but Meta.
  std::vector<Mutation> one_of_each() {
    return {put_of(a_namespace()),        put_of(a_session()),     put_of(a_pool()),
            put_of(a_replica()),          put_of(a_reservation()), put_of(a_lease()),
            put_of(an_operation()),       put_of(a_job()),         put_of(a_pin()),
            put_of(an_eviction_setting())};
  }

 private:
  std::mt19937_64 random_;
};

inline bool same(const Forgotten&, const Forgotten&) { return true; }
inline bool same(const Meta& a, const Meta& b) {
  const auto tie = [](const Meta& m) {
    const auto& [store_id, epoch] = m;
    return std::tuple(store_id, epoch);
  };
  return tie(a) == tie(b);
}
inline bool same(const Namespace& a, const Namespace& b) {
  const auto tie = [](const Namespace& n) {
    const auto& [id, spec, fingerprint, quota_bytes, evicted_below] = n;
    return std::tuple(id, spec, fingerprint, quota_bytes, evicted_below);
  };
  return tie(a) == tie(b);
}
inline bool same(const Session& a, const Session& b) {
  const auto tie = [](const Session& s) {
    const auto& [id, role, token, request_token, name, node, boot_id, incarnation, worker,
                 worker_name, life_names, access_domains, write_order, operation_low_water, ending,
                 version, host_memory_bytes] = s;
    return std::tuple(id, role, token, request_token, name, node, boot_id, incarnation, worker,
                      worker_name, life_names, access_domains, write_order, operation_low_water,
                      ending, version, host_memory_bytes);
  };
  return tie(a) == tie(b);
}
inline bool same(const Pool& a, const Pool& b) {
  const auto tie = [](const Pool& p) {
    const auto& [id, spec, owner, owner_name, node, boot_id, state, importers, exports] = p;
    return std::pair(std::tuple(id, spec, owner, owner_name, node, boot_id, state, importers),
                     exports);
  };
  return tie(a) == tie(b);
}
inline bool same(const Replica& a, const Replica& b) {
  const auto tie = [](const Replica& r) {
    const auto& [id, key, pool, offset, size_bytes, state, why, in_reservation] = r;
    return std::tuple(id, key, pool, offset, size_bytes, state, why, in_reservation);
  };
  return tie(a) == tie(b);
}
inline bool same(const Reservation& a, const Reservation& b) {
  const auto tie = [](const Reservation& r) {
    const auto& [first, session, operation, granted, deadline, write_within, quarantined, items] =
        r;
    std::vector<std::tuple<uint32_t, ObjectKey, PoolId, uint64_t>> columns;
    for (const auto& [index, key, pool, size_bytes] : items)
      columns.emplace_back(index, key, pool, size_bytes);
    return std::tuple(first, session, operation, granted, deadline, write_within, quarantined,
                      columns);
  };
  return tie(a) == tie(b);
}
inline bool same(const Lease& a, const Lease& b) {
  const auto tie = [](const Lease& l) {
    const auto& [id, session, operation, taken, ttl, expires, revoking, replicas] = l;
    return std::tuple(id, session, operation, taken, ttl, expires, revoking, replicas);
  };
  return tie(a) == tie(b);
}
inline bool same(const Operation& a, const Operation& b) {
  const auto tie = [](const Operation& o) {
    const auto& [session, number, kind, content_hash, codes, first, pools, lease, miss] = o;
    return std::tuple(session, number, kind, content_hash, codes, first, pools, lease, miss);
  };
  return tie(a) == tie(b);
}
inline bool same(const Job& a, const Job& b) {
  const auto tie = [](const Job& j) {
    const auto& [id, kind, pool, session, namespace_id, target_bytes, cursor, done] = j;
    return std::tuple(id, kind, pool, session, namespace_id, target_bytes, cursor, done);
  };
  return tie(a) == tie(b);
}
inline bool same(const Pin& a, const Pin& b) {
  const auto tie = [](const Pin& p) {
    const auto& [replica, kind, expires] = p;
    return std::tuple(replica, kind, expires);
  };
  return tie(a) == tie(b);
}
inline bool same(const EvictionSetting& a, const EvictionSetting& b) { return a == b; }

inline bool same(const Mutation& a, const Mutation& b) {
  if (a.key != b.key || a.value.index() != b.value.index()) return false;
  return visit_record(a.value, [&]<class R>(const R& record) {
    if constexpr (requires { same(record, record); })
      return same(record, *record_if<R>(b.value));
    else
      return false;  // soft: never stored
  });
}

inline std::vector<uint64_t> sample_seeds(uint64_t count) {
  if (const char* text = std::getenv("BERTH_SEED")) return {std::stoull(text)};
  std::vector<uint64_t> seeds;
  for (uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

}  // namespace berth::testing
