// The ledger against a model that knows nothing of indexes, counts or slots: plain maps, and one
// owner for each page. Random commands, sensible and nonsense, in a different mix for each seed.
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/unit/pool/ledger_rig.h"
#include "tests/unit/pool/seed.h"
#include "worker/pool/ledger.h"

namespace berth::pool {
namespace {

constexpr uint64_t kPages = 24;
constexpr uint64_t kBudgetPages = 20;
constexpr uint64_t kIdCount = 40;  // small, so that ids meet again
constexpr uint64_t kLeaseCount = 6;
constexpr uint64_t kClientCount = 3;

struct ModelReplica {
  uint64_t client = 0;
  uint64_t pages = 0;
  uint64_t offset = 0;
  LedgerState state = LedgerState::kWriting;
  bool writer_out = false;
  bool reclaim_asked = false;
};

struct Model {
  std::map<uint64_t, ModelReplica> replicas;
  struct Lease {
    uint64_t client;
    std::vector<uint64_t> ids;
  };
  std::map<uint64_t, Lease> leases;
  std::vector<uint64_t> acknowledge;

  uint64_t readers(uint64_t id) const {
    uint64_t count = 0;
    for (const auto& [lease_id, held] : leases)
      for (const uint64_t read : held.ids) count += read == id ? 1 : 0;
    return count;
  }
  bool is_out(uint64_t id) const { return replicas.at(id).writer_out || readers(id) > 0; }
  uint64_t used_pages() const {
    uint64_t pages = 0;
    for (const auto& [id, held] : replicas)
      if (held.state != LedgerState::kReclaimed) pages += held.pages;
    return pages;
  }

  // What no span keeps goes, whatever happened just now.
  void settle() {
    for (auto it = replicas.begin(); it != replicas.end();) {
      ModelReplica& held = it->second;
      const bool stays = is_out(it->first) || held.state == LedgerState::kReclaimed;
      if (!stays && held.reclaim_asked) {
        held.reclaim_asked = false;
        held.state = LedgerState::kReclaimed;
        acknowledge.push_back(it->first);
      } else if (!stays && held.state == LedgerState::kForgotten) {
        it = replicas.erase(it);
        continue;
      }
      ++it;
    }
  }
};

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed), rig_(kPages, kBudgetPages) {
    for (uint64_t& weight : weights_) weight = below(random_, 8);
    weights_[0] += 4;  // something has to be stored
  }

  void step() {
    switch (pick()) {
      case 0:
        return allocate();
      case 1:
        return written();
      case 2:
        return sealed();
      case 3:
        return abort();
      case 4:
        return open();
      case 5:
        return close();
      case 6:
        return reclaim();
      case 7:
        return acked();
      case 8:
        return drop_client();
      default:
        return verdict();
    }
  }

  void compare() {
    REQUIRE(rig_.ledger.check_invariants() == "");
    // One call may free several replicas; the model does not know in which order.
    std::vector<uint64_t> acknowledged;
    for (const ReplicaId id : rig_.ledger.take_acknowledgements())
      acknowledged.push_back(id.value() & kIdCounterMax);
    std::sort(acknowledged.begin(), acknowledged.end());
    std::sort(model_.acknowledge.begin(), model_.acknowledge.end());
    REQUIRE(acknowledged == std::exchange(model_.acknowledge, {}));

    REQUIRE(rig_.ledger.entry_count() == model_.replicas.size());
    std::map<uint64_t, uint64_t> owner_of_page;
    uint64_t spans = 0;
    for (const auto& [id, held] : model_.replicas) {
      INFO("replica " << id);
      const LedgerEntry* entry = rig_.ledger.find(replica(id));
      REQUIRE(entry);
      REQUIRE(entry->state == held.state);
      REQUIRE(entry->writer_out == held.writer_out);
      REQUIRE(entry->reclaim_asked == held.reclaim_asked);
      REQUIRE(entry->readers == model_.readers(id));
      REQUIRE(entry->offset == held.offset);
      spans += entry->readers + (held.writer_out ? 1 : 0);
      if (held.state == LedgerState::kReclaimed) continue;
      for (uint64_t page = 0; page < held.pages; ++page)
        REQUIRE(owner_of_page.emplace(held.offset / kPage + page, id).second);
    }
    REQUIRE(rig_.used_pages() == model_.used_pages());
    REQUIRE(rig_.used_pages() <= kBudgetPages);
    REQUIRE(rig_.usage().spans_out == spans);
    REQUIRE(rig_.ledger.leases().size() == model_.leases.size());
    for (const auto& [id, held] : model_.leases)
      REQUIRE(rig_.ledger.leases().at(lease(id)).replicas == replicas(held.ids));
    compare_report();
  }

  // Everybody gives everything back: nothing may stay.
  void drain() {
    for (uint64_t client = 1; client <= kClientCount; ++client) {
      rig_.ledger.drop_client(SessionId(client));
      for (auto& [id, held] : model_.replicas)
        if (held.client == client) held.writer_out = false;
      std::erase_if(model_.leases, [&](const auto& held) { return held.second.client == client; });
    }
    for (uint64_t id = 1; id <= kIdCount; ++id) rig_.reclaim(id);
    for (uint64_t id = 1; id <= kIdCount; ++id) rig_.confirm(id);
    rig_.ledger.take_acknowledgements();
    REQUIRE(rig_.ledger.entry_count() == 0);
    REQUIRE(rig_.usage().largest_hole_bytes == kPages * kPage);
    REQUIRE(rig_.usage().spans_out == 0);
    REQUIRE(rig_.ledger.clients().empty());
    REQUIRE(rig_.ledger.check_invariants() == "");
  }

 private:
  size_t pick() {
    uint64_t total = 0;
    for (const uint64_t weight : weights_) total += weight;
    uint64_t at = below(random_, total);
    size_t kind = 0;
    while (at >= weights_[kind]) at -= weights_[kind++];
    return kind;
  }
  uint64_t any_id() { return 1 + below(random_, kIdCount); }
  uint64_t any_client() { return 1 + below(random_, kClientCount); }
  ModelReplica* find(uint64_t id) {
    const auto held = model_.replicas.find(id);
    return held == model_.replicas.end() ? nullptr : &held->second;
  }

  void allocate() {
    const uint64_t id = any_id();
    const uint64_t client = any_client();
    const uint64_t size = 1 + below(random_, 4 * kPage);
    const uint64_t pages = (size + kPage - 1) / kPage;
    const Allocation place = rig_.ledger.allocate(rig_.grant(id, size, SessionId(client)));
    if (find(id)) {
      REQUIRE(place.code == AllocateCode::kDuplicate);
    } else if (model_.used_pages() + pages > kBudgetPages) {
      REQUIRE(place.code == AllocateCode::kOverLimit);
    } else if (place.code == AllocateCode::kNoHole) {
      REQUIRE(rig_.usage().largest_hole_bytes < pages * kPage);
    } else {
      REQUIRE(place.code == AllocateCode::kAllocated);
      model_.replicas[id] = {
          .client = client, .pages = pages, .offset = place.offset, .writer_out = true};
    }
  }

  void written() {
    const uint64_t id = any_id();
    const uint64_t client = any_client();
    const WrittenCode code = rig_.ledger.written(SessionId(client), replica(id));
    ModelReplica* held = find(id);
    if (!held || held->client != client) {
      REQUIRE(code == WrittenCode::kUnknown);
      return;
    }
    const bool was_complete =
        held->state == LedgerState::kWritten || held->state == LedgerState::kSealed;
    const bool completes = held->state == LedgerState::kWriting && !held->reclaim_asked;
    REQUIRE((code == WrittenCode::kWritten) == (was_complete || completes));
    held->writer_out = false;
    if (completes) held->state = LedgerState::kWritten;
    model_.settle();
  }

  void sealed() {
    const uint64_t id = any_id();
    const bool is_sealed = rig_.ledger.sealed(replica(id));
    ModelReplica* held = find(id);
    if (held && held->state == LedgerState::kWritten) held->state = LedgerState::kSealed;
    REQUIRE(is_sealed == (held && held->state == LedgerState::kSealed));
  }

  void abort() {
    const uint64_t id = any_id();
    const uint64_t client = any_client();
    const WriterSpan span = below(random_, 2) == 0 ? WriterSpan::kReturned : WriterSpan::kMayBeOut;
    const bool is_free = rig_.ledger.abort(SessionId(client), replica(id), span);
    ModelReplica* held = find(id);
    if (held && held->client == client) {
      if (span == WriterSpan::kReturned) held->writer_out = false;
      const bool is_open =
          held->state == LedgerState::kWriting || held->state == LedgerState::kWritten;
      if (is_open && !held->reclaim_asked) held->state = LedgerState::kForgotten;
      model_.settle();
      held = find(id);
      REQUIRE(is_free == (!held || held->state == LedgerState::kReclaimed));
    } else {
      REQUIRE(is_free == !held);
    }
  }

  void open() {
    const uint64_t lease_id = 1 + below(random_, kLeaseCount);
    const uint64_t client = any_client();
    std::vector<SpanRequest> items;
    std::vector<uint64_t> readable;
    for (uint64_t count = below(random_, 4); count > 0; --count) {
      const uint64_t id = any_id();
      const ModelReplica* held = find(id);
      if (!held) {
        items.push_back({.replica = replica(id), .pool = kPool, .offset = 0, .size_bytes = kPage});
        continue;
      }
      items.push_back(rig_.span_of(id));
      const bool is_wrong = below(random_, 4) == 0;
      if (is_wrong) items.back().offset += kPage;
      const bool is_complete =
          held->state == LedgerState::kWritten || held->state == LedgerState::kSealed;
      if (!is_wrong && is_complete && !held->reclaim_asked) readable.push_back(id);
    }
    const auto codes = rig_.ledger.open_spans(lease(lease_id), SessionId(client), 1, items);
    if (const auto held = model_.leases.find(lease_id); held != model_.leases.end()) {
      REQUIRE(codes.has_value() == (held->second.client == client));
      return;
    }
    REQUIRE(codes);
    REQUIRE(static_cast<size_t>(std::count(codes->begin(), codes->end(), SpanCode::kOpen)) ==
            readable.size());
    if (!readable.empty()) model_.leases[lease_id] = {client, readable};
  }

  void close() {
    const uint64_t lease_id = 1 + below(random_, kLeaseCount);
    const bool was_held = rig_.ledger.close_spans(lease(lease_id));
    REQUIRE(was_held == (model_.leases.erase(lease_id) == 1));
    model_.settle();
  }

  void reclaim() {
    const uint64_t id = any_id();
    rig_.reclaim(id);
    ask_reclaim(id);
  }
  void ask_reclaim(uint64_t id) {
    ModelReplica* held = find(id);
    if (!held || held->state == LedgerState::kReclaimed)
      model_.acknowledge.push_back(id);
    else
      held->reclaim_asked = true;
    model_.settle();
  }

  void acked() {
    const uint64_t id = any_id();
    rig_.confirm(id);
    const ModelReplica* held = find(id);
    if (held && held->state == LedgerState::kReclaimed) model_.replicas.erase(id);
  }

  void drop_client() {
    const uint64_t client = any_client();
    std::vector<ReplicaId> expected;
    for (auto& [id, held] : model_.replicas) {
      if (held.client != client) continue;
      held.writer_out = false;
      const bool is_open =
          held.state == LedgerState::kWriting || held.state == LedgerState::kWritten;
      // A reader of another client may keep an open one that is being reclaimed.
      if (is_open && !held.reclaim_asked) expected.push_back(replica(id));
    }
    std::erase_if(model_.leases, [&](const auto& held) { return held.second.client == client; });
    model_.settle();
    REQUIRE(rig_.ledger.drop_client(SessionId(client)) == expected);
  }

  void verdict() {
    const uint64_t id = any_id();
    const auto verdict = static_cast<Verdict>(1 + below(random_, 5));
    const VerdictCode code = rig_.ledger.apply(verdict, replica(id));
    ModelReplica* held = find(id);
    if (!held || held->state == LedgerState::kForgotten) {
      REQUIRE(code == VerdictCode::kUnknown);
      return;
    }
    const bool is_reclaimed = held->state == LedgerState::kReclaimed;
    switch (verdict) {
      case Verdict::kKeep:
      case Verdict::kAdopted:
        if (code == VerdictCode::kKept) held->reclaim_asked = false;
        REQUIRE((code == VerdictCode::kNonsense) ==
                (verdict == Verdict::kKeep ? is_reclaimed : held->state != LedgerState::kSealed));
        return;
      case Verdict::kFree:
        held->reclaim_asked = false;
        if (is_reclaimed)
          model_.replicas.erase(id);
        else
          held->state = LedgerState::kForgotten;
        model_.settle();
        REQUIRE((code == VerdictCode::kFreed) == (find(id) == nullptr));
        return;
      case Verdict::kReclaim:
        ask_reclaim(id);
        REQUIRE((code == VerdictCode::kFreed) == (find(id)->state == LedgerState::kReclaimed));
        return;
      case Verdict::kQuarantine:
        REQUIRE((code == VerdictCode::kNonsense) == is_reclaimed);
        if (is_reclaimed) return;
        held->reclaim_asked = false;
        held->state = LedgerState::kQuarantined;
        return;
    }
  }

  void compare_report() {
    std::vector<ReplicaId> expected;
    for (const auto& [id, held] : model_.replicas)
      if (held.state != LedgerState::kForgotten) expected.push_back(replica(id));
    REQUIRE(rig_.ledger.reattach_order() == expected);
    for (uint64_t client = 1; client <= kClientCount; ++client) {
      ClientSpans spans;
      for (const auto& [id, held] : model_.replicas)
        if (held.client == client && held.writer_out) {
          ++spans.writers;
          spans.bytes += rig_.ledger.find(replica(id))->size_bytes;
        }
      for (const auto& [lease_id, held] : model_.leases)
        if (held.client == client) {
          ++spans.leases;
          spans.readers += held.ids.size();
          for (const uint64_t id : held.ids)
            spans.bytes += rig_.ledger.find(replica(id))->size_bytes;
        }
      REQUIRE(rig_.ledger.spans_of(SessionId(client)) == spans);
    }
  }

  std::mt19937_64 random_;
  std::array<uint64_t, 10> weights_{};
  LedgerRig rig_;
  Model model_;
};

TEST_CASE("the ledger agrees with a plain model under any mix of commands", "[pool][ledger]") {
  for (const uint64_t seed : property_seeds(60)) {
    INFO(replay_with(seed));
    Run run(seed);
    for (int step = 0; step < 300; ++step) {
      INFO("step " << step);
      run.step();
      run.compare();
    }
    run.drain();
  }
}

}  // namespace
}  // namespace berth::pool
