#include "server/directory/apply.h"

#include "server/directory/context.h"

namespace berth {

Result<Outcome> apply(Draft& draft, const DirectoryConfig& config, const Command& command,
                      Time now) {
  const Draft::Savepoint savepoint = draft.savepoint();
  const Context context{draft, config, now};
  Result<Outcome> outcome = std::visit([&](const auto& c) { return handle(context, c); }, command);
  if (!outcome) draft.roll_back_to(savepoint);
  return outcome;
}

namespace {
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;
}  // namespace

size_t weight_of(const Command& command) {
  return 1 + std::visit(Overloaded{
                            [](const Reserve& c) { return c.keys.size(); },
                            [](const Commit& c) { return c.replicas.size(); },
                            [](const Abort& c) { return c.replicas.size(); },
                            [](const Evict& c) { return c.replicas.size(); },
                            [](const EvictChunks& c) { return c.digests.size() * 16; },
                            [](const PinChunks& c) { return c.digests.size() * 16; },
                            [](const UnpinChunks& c) { return c.digests.size() * 16; },
                            [](const MakeRoom& c) { return c.replicas.size(); },
                            [](const ReclaimAck& c) { return c.replicas.size(); },
                            [](const Acquire& c) { return c.digests.size(); },
                            [](const Release& c) { return c.leases.size() * 16; },
                            [](const ReconcileChunk& c) { return c.rows.size(); },
                            [](const auto&) { return size_t{0}; },
                        },
                        command);
}

}  // namespace berth
