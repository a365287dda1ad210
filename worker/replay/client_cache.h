// The real thing: blocks in a Berth worker's pools, through berth::Client. Every engine has its
// own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/client/client.h"
#include "worker/replay/engine.h"

namespace berth::replay {

struct ClientCacheOptions {
  std::string socket;
  std::string engine_id;
  std::string name_space = "replay";
  uint64_t block_bytes = 0;  // of one item
  uint32_t shards = 1;
  uint32_t parts = 1;
  Duration probe_deadline = seconds(1);
  Duration join_deadline = seconds(60);
};

class ClientCache final : public BlockCache {
 public:
  // Joins and opens the namespace. Errors: as Client::join and open_namespace.
  static Result<std::unique_ptr<ClientCache>> open(const ClientCacheOptions& options);

  Result<Probed> probe(std::span<const Digest> chain) override;
  Result<Loaded> load(std::span<const Digest> chain) override;
  Result<> store(std::span<const Digest> rest, uint32_t first, Counts& counts) override;

  uint64_t rejoins() const { return client_->stats().joins - 1; }

 private:
  ClientCache(const ClientCacheOptions& options, std::unique_ptr<Client> client)
      : options_(options), client_(std::move(client)) {}

  Result<> open_namespace();
  uint32_t chunks_per_batch() const;
  Result<> store_batch(std::span<const Digest> chunks, uint32_t first, bool ends_chain,
                       Counts& counts);
  uint64_t write_granted(std::span<const Digest> chunks, const client::PendingStore& store) const;
  BlockIdentity identity_of_item(std::span<const Digest> chunks, size_t item) const;
  uint64_t count_wrong_items(std::span<const Digest> chain, const client::LoadHandle& handle) const;

  const ClientCacheOptions options_;
  std::unique_ptr<Client> client_;
  client::Namespace name_space_;
};

}  // namespace berth::replay
