// The witness on pools that workers of one host share: who may read what.
#include <algorithm>

#include "common/text.h"
#include "tests/sim/witness.h"

namespace berth::sim {

void Witness::note_imports(const Directory& directory, std::span<const Command> commands,
                           const Decision& decision) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!decision.outcomes[i]) continue;
    if (const auto* import = std::get_if<ImportPool>(&commands[i]))
      imports_.insert({import->pool, import->caller.session, import->life_name});
    const auto* end = std::get_if<EndExports>(&commands[i]);
    if (!end) continue;
    for (const std::string& life_name : end->life_names) {
      judge_.expect(locks_.is_free(life_name), [&] {
        return "an export of pool " + to_text(end->pool) + " was ended while its life lock is held";
      });
    }
  }
  // An export is over by its owner's proof, with its pool, or with its host.
  for (const Mutation& mutation : decision.mutations) {
    const auto* after = record_if<Pool>(mutation.value);
    const Pool* before = after ? directory.find<Pool>(after->id) : nullptr;
    if (!before || after->state == PoolState::kGone) continue;
    for (const PoolExport& e : before->exports) {
      const bool is_kept =
          std::any_of(after->exports.begin(), after->exports.end(),
                      [&](const PoolExport& kept) { return kept.life_name == e.life_name; });
      judge_.expect(is_kept || locks_.is_free(e.life_name), [&] {
        return "an export of pool " + to_text(after->id) + " was forgotten while it is held";
      });
    }
  }
}

// After the leases that the same batch made before.
void Witness::note_ended_exports(std::span<const Command> commands, const Decision& decision) {
  for (size_t i = 0; i < commands.size(); ++i) {
    const auto* end = std::get_if<EndExports>(&commands[i]);
    if (!end || !decision.outcomes[i]) continue;
    std::erase_if(imports_, [&](const Import& import) {
      return std::count(end->life_names.begin(), end->life_names.end(), import.life_name) > 0;
    });
  }
}

// Whoever reads reaches it: in its own worker's memory, or in a HOST pool that its worker holds.
void Witness::check_reach(const Directory& directory, const Lease& lease) {
  const Session* client = directory.find<Session>(lease.session);
  if (!client || directory.find<Lease>(lease.id)) return;
  for (const ReplicaId id : lease.replicas) {
    const Replica* replica = directory.find<Replica>(id);
    const Pool* pool = replica ? directory.find<Pool>(replica->pool) : nullptr;
    if (!pool) continue;
    const bool is_private = pool->spec.scope == Scope::kProcess;
    const bool is_own =
        pool->owner == client->worker && (!is_private || pool->spec.engine == client->name);
    const bool is_imported =
        !is_private && pool->node == client->node &&
        std::any_of(imports_.begin(), imports_.end(), [&](const Import& import) {
          return import.pool == pool->id && import.worker == client->worker;
        });
    judge_.expect(is_own || is_imported, [&] {
      return "lease " + to_text(lease.id) + " of client " + to_text(client->id) +
             " protects replica " + to_text(id) + " in pool " + to_text(pool->id) +
             ", which it does not reach";
    });
  }
}

}  // namespace berth::sim
