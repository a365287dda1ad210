// What each planted bug does to pools that workers of one host share.
#include <algorithm>
#include <utility>

#include "tests/sim/commands.h"
#include "tests/sim/server_run.h"

namespace berth::sim {

void Server::plant_in_sharing(std::span<const Command> commands, Decision& decision) {
  const Directory& directory = run_->directory;
  if (plant_ == Plant::kImportsKept)
    std::erase_if(decision.asks, [](const Ask& ask) { return ask.kind == Ask::Kind::kDropImport; });
  const auto is_read_elsewhere = [&](const Lease& lease, ReplicaId id) {
    const Session* client = directory.find<Session>(lease.session);
    const Replica* replica = directory.find<Replica>(id);
    return client && replica && directory.find<Pool>(replica->pool)->owner != client->worker;
  };
  for (Mutation& mutation : decision.mutations) {
    if (auto* lease = std::get_if<Lease>(&mutation.value);
        lease && plant_ == Plant::kImportedLeaseIgnored)
      std::erase_if(lease->replicas, [&](ReplicaId id) { return is_read_elsewhere(*lease, id); });
    auto* pool = record_if<Pool>(mutation.value);
    if (!pool) continue;
    if (plant_ == Plant::kReadBeforeImport && any_is<ExportPool>(commands))
      for (PoolExport& e : pool->exports) e.imported |= e.importer.valid();
    if (plant_ == Plant::kDeadImporterForgotten)
      std::erase_if(pool->exports, [](const PoolExport& e) { return !e.importer.valid(); });
    if (plant_ == Plant::kGoneForgetsImporters && pool->state == PoolState::kGone)
      for (const PoolExport& e : std::exchange(pool->exports, {}))
        std::erase(pool->importers, e.life_name);
  }
}

// A power cut may take any lease, here it takes all; and nobody is waited for.
void Server::plant_readers_not_awaited(Directory& fresh) {
  std::vector<Mutation> changed;
  if (std::exchange(planted_loss_, false))
    for (const auto& [id, lease] : fresh.leases())
      changed.push_back({RecordTraits<Lease>::key(id), Forgotten{}});
  if (!changed.empty() && !run_->store.commit(changed, run_->clock.now(), true)) return;
  for (const auto& [id, session] : fresh.sessions())
    if (session.role == Role::kWorker)
      changed.push_back(put_of(Presence{.session = id, .leases_stated = true}));
  fresh.install(changed);
}

}  // namespace berth::sim
