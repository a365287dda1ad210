#include "tests/sim/describe.h"

#include <algorithm>
#include <vector>

#include "tests/sim/random.h"

namespace berth::sim {
namespace {

// Fields of one record, separated by blanks.
class Line {
 public:
  Line(std::string& out, const char* kind) : out_(out) { out_ += kind; }
  ~Line() { out_ += '\n'; }
  Line& operator<<(uint64_t number) {
    out_ += ' ';
    out_ += std::to_string(number);
    return *this;
  }
  Line& operator<<(const std::string& text) {
    out_ += ' ';
    out_ += text;
    return *this;
  }
  Line& operator<<(const Id128& id) { return *this << id.high << id.low; }
  template <class Tag>
  Line& operator<<(Id<Tag> id) {
    return *this << id.value();
  }
  Line& operator<<(const ObjectKey& key) {
    return *this << hash_of(key) << key.namespace_number << key.shard << key.part;
  }
  template <class T>
  Line& operator<<(const std::vector<T>& many) {
    *this << many.size();
    for (const T& one : many) *this << one;
    return *this;
  }

 private:
  std::string& out_;
};

uint64_t number(Time time) { return static_cast<uint64_t>(time.millis); }
uint64_t number(Duration duration) { return static_cast<uint64_t>(duration.millis); }
template <class E>
uint64_t code(E value) {
  return static_cast<uint64_t>(value);
}

void add(std::string& out, const Session& s) {
  Line(out, "session") << s.id << code(s.role) << s.token << s.request_token << s.name << s.node
                       << s.boot_id << s.incarnation << s.worker << s.worker_name << s.life_names
                       << s.operation_low_water << uint64_t{s.ending} << s.host_memory_bytes;
}

void add(std::string& out, const Pool& p) {
  Line(out, "pool") << p.id << p.spec.name << code(p.spec.scope) << p.spec.engine
                    << p.spec.capacity_bytes << p.spec.page_bytes << p.spec.budget_bytes
                    << p.spec.backing_bytes << p.owner << p.owner_name << p.node << p.boot_id
                    << code(p.state) << p.importers;
  for (const PoolExport& e : p.exports)
    Line(out, "export") << p.id << e.importer << e.worker << e.life_name << uint64_t{e.imported}
                        << uint64_t{e.unsure};
}

void add(std::string& out, const Reservation& r) {
  Line line(out, "reservation");
  line << r.first << r.session << r.operation << r.granted << number(r.deadline)
       << number(r.write_within) << uint64_t{r.quarantined};
  for (const ReservedItem& item : r.items)
    line << item.index << item.key << item.pool << item.size_bytes;
}

void add(std::string& out, const Operation& o) {
  Line line(out, "operation");
  line << o.session << o.number << code(o.kind) << o.content_hash << o.first << o.pools << o.lease
       << code(o.miss);
  for (const uint8_t item : o.codes) line << uint64_t{item};
}

}  // namespace

std::string describe(const Directory& d) {
  std::string out;
  Line(out, "meta") << d.meta().store_id << d.meta().epoch;
  for (const auto& [id, n] : d.namespaces())
    Line(out, "namespace") << id << n.spec.name << n.fingerprint << n.quota_bytes
                           << n.evicted_below;
  for (const auto& [id, session] : d.sessions()) add(out, session);
  std::vector<Replica> replicas;
  for (const auto& [id, entry] : d.pools()) {
    add(out, entry.pool);
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = d.replicas().at(slot).pool_next)
      replicas.push_back(d.replicas().at(slot).replica);
  }
  std::sort(replicas.begin(), replicas.end(),
            [](const Replica& a, const Replica& b) { return a.id < b.id; });
  for (const Replica& r : replicas)
    Line(out, "replica") << r.id << r.key << r.pool << r.offset << r.size_bytes << code(r.state)
                         << code(r.why) << uint64_t{r.in_reservation};
  for (const auto& [id, reservation] : d.reservations()) add(out, reservation);
  for (const auto& [id, l] : d.leases())
    Line(out, "lease") << id << l.session << l.operation << number(l.taken) << number(l.ttl)
                       << number(l.expires) << uint64_t{l.revoking} << l.replicas;
  for (const auto& [key, operation] : d.operations()) add(out, operation);
  for (const auto& [id, j] : d.jobs())
    Line(out, "job") << id << code(j.kind) << j.pool << j.session << j.namespace_id
                     << j.target_bytes << j.cursor << j.done;
  for (const auto& [id, pin] : d.pins())
    Line(out, "pin") << id << code(pin.kind) << number(pin.expires);
  if (const EvictionSetting* set = d.find<EvictionSetting>({}))
    Line(out, "eviction") << code(set->kind) << uint64_t{set->high_permille}
                          << uint64_t{set->low_permille};
  return out;
}

Directory copy_of(const Directory& d) {
  std::vector<Mutation> records{put_of(d.meta())};
  for (const auto& [id, record] : d.namespaces()) records.push_back(put_of(record));
  for (const auto& [id, record] : d.sessions()) records.push_back(put_of(record));
  for (const auto& [id, entry] : d.pools()) records.push_back(put_of(entry.pool));
  for (const auto& [id, entry] : d.pools())
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = d.replicas().at(slot).pool_next)
      records.push_back(put_of(d.replicas().at(slot).replica));
  for (const auto& [id, record] : d.reservations()) records.push_back(put_of(record));
  for (const auto& [id, record] : d.leases()) records.push_back(put_of(record));
  for (const auto& [key, record] : d.operations()) records.push_back(put_of(record));
  for (const auto& [id, record] : d.jobs()) records.push_back(put_of(record));
  for (const auto& [id, record] : d.pins()) records.push_back(put_of(record));
  if (const EvictionSetting* set = d.find<EvictionSetting>({})) records.push_back(put_of(*set));
  Directory copy;
  copy.install(records);
  copy.set_counters(d.counters());
  return copy;
}

uint64_t hash_of_text(const std::string& text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return mix(hash, text.size());
}

std::string first_difference(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const auto line = [at](const std::string& text) {
    const size_t start = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(start, text.find('\n', at) - start);
  };
  return "\"" + line(a) + "\" against \"" + line(b) + "\"";
}

}  // namespace berth::sim
