// A batch decides what its commands decide one by one, whatever they name twice.
#include <algorithm>
#include <map>
#include <random>

#include "common/text.h"
#include "tests/unit/directory/world.h"
#include "tests/unit/pool/seed.h"

namespace berth {
namespace {

// The same sequence of commands, made twice: each world only sees its own answers.
struct Deeds : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 96 * kPage);
  std::vector<SessionId> clients{join(worker, "a"), join(worker, "b")};

  Command random_command(std::mt19937_64& chance) {
    const auto up_to = [&](uint64_t n) { return chance() % n; };
    const SessionId client = clients[up_to(2)];
    const ReplicaId any = make_id<ReplicaId>(directory.meta().epoch, 1 + up_to(ids_reserved + 4));
    std::vector<int> chunks;
    for (uint64_t n = 1 + up_to(5); n > 0; --n) chunks.push_back(static_cast<int>(up_to(24)));
    std::vector<ReplicaId> replicas;
    for (uint64_t n = 1 + up_to(6); n > 0; --n)
      replicas.push_back(ReplicaId(any.value() + (up_to(4) == 0 ? up_to(9) : n)));
    if (up_to(2) == 0) std::sort(replicas.begin(), replicas.end());
    switch (up_to(8)) {
      case 0:
      case 1:
        ids_reserved += chunks.size();
        return reserve_command(worker, client, ns, chunks);
      case 2:
      case 3: {
        Commit commit = commit_command(worker, client, replicas);
        for (size_t i = 0; i < replicas.size(); ++i)
          commit.offsets[i] = replicas[i].value() % 96 * kPage;
        if (up_to(6) == 0) commit.offsets.back() = 1;  // refused, perhaps half-way
        return commit;
      }
      case 4:
        return Abort{worker.caller(), client, replicas};
      case 5:
        return acquire_command(worker, client, ns, chunks);
      case 6:
        return up_to(2) == 0 ? Command(Evict{replicas})
                             : Command(ReclaimAck{worker.caller(), replicas});
      default:
        return Release{
            worker.caller(), client, {make_id<LeaseId>(directory.meta().epoch, 1 + up_to(12))}};
    }
  }

  std::string text() const {
    std::string out;
    const auto add = [&](const auto& value) { out += std::to_string(value) + " "; };
    const ReplicaTable& table = directory.replicas();
    std::map<ReplicaId, uint32_t> by_id;
    for (uint32_t slot = 0; slot < table.slot_limit(); ++slot)
      if (table.at(slot).replica.id.valid()) by_id[table.at(slot).replica.id] = slot;
    for (const auto& [id, slot] : by_id) {
      const Replica& r = table.at(slot).replica;
      add(id.value()), add(int(r.key.digest.bytes[0])), add(r.offset), add(int(r.state));
      add(int(r.why)), add(int(r.in_reservation)), add(table.at(slot).lease_count);
    }
    for (const auto& [first, reservation] : directory.reservations())
      add(first.value()), add(reservation.items.size());
    for (const auto& [key, operation] : directory.operations())
      out += to_text(key.session) + codes_text(operation.codes);
    for (const auto& [id, lease] : directory.leases()) add(id.value()), add(lease.replicas.size());
    return out;
  }

  uint64_t ids_reserved = 0;
};

TEST_CASE("a batch of random commands leaves what the same commands leave one by one",
          "[directory][draft]") {
  for (const uint64_t seed : pool::property_seeds(60)) {
    INFO(pool::replay_with(seed));
    Deeds alone;
    Deeds together;
    std::mt19937_64 chance(seed);
    for (int batch = 0; batch < 8; ++batch) {
      std::vector<Command> commands;
      for (uint64_t n = 1 + chance() % 8; n > 0; --n)
        commands.push_back(alone.random_command(chance));
      std::string answers_alone;
      for (const Command& command : commands)
        answers_alone += alone.run(command).has_value() ? 'y' : 'n';
      Draft draft(together.directory);
      std::string answers_together;
      for (const Command& command : commands)
        answers_together +=
            apply(draft, together.config, command, together.now).has_value() ? 'y' : 'n';
      const IdCounters counters = draft.counters();
      together.directory.install(draft.take_mutations());
      together.directory.set_counters(counters);
      REQUIRE(answers_together == answers_alone);
      REQUIRE(check_invariants(together.directory) == "");
      REQUIRE(together.text() == alone.text());
    }
  }
}

TEST_CASE_METHOD(Deeds, "a grant that is rolled back is not found by its object key any more",
                 "[directory][draft]") {
  Draft draft(directory);
  const Draft::Savepoint before = draft.savepoint();
  REQUIRE(apply(draft, config, reserve_command(worker, clients[0], ns, {1, 2}), now).has_value());
  const ObjectKey key{digest(1), static_cast<uint32_t>(ns.value()), 0, 0};
  size_t found = 0;
  const auto count = [&](const Replica&) {
    ++found;
    return true;
  };
  draft.each_replica(key, count);
  CHECK(found == 1);
  draft.roll_back_to(before);
  draft.each_replica(key, count);
  CHECK(found == 1);
  CHECK(draft.pool_usage(pool) == PoolUsage{});
  CHECK(draft.take_mutations().empty());
}

TEST_CASE_METHOD(Deeds, "replicas become READY together with the slots that they lie in",
                 "[directory][draft]") {
  const Reserved reserved = reserve(worker, clients[0], ns, {1, 2, 3});
  Draft draft(directory);
  const Commit commit =
      commit_command(worker, clients[0], {reserved.first, ReplicaId(reserved.first.value() + 1)});
  REQUIRE(apply(draft, config, commit, now).has_value());
  size_t put = 0;
  for (const Mutation& mutation : draft.take_mutations()) {
    if (!std::holds_alternative<Replica>(mutation.value)) continue;
    CHECK(directory.replicas().is_at(mutation.slot, ReplicaId(mutation.key.first)));
    CHECK(mutation.is_first_record);
    ++put;
  }
  CHECK(put == 2);
}

}  // namespace
}  // namespace berth
