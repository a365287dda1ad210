// A worker with one pool, attached by hand, and a client of it that stores: what a sequencer needs
// before everyday commands mean something.
#pragma once

#include "tests/unit/sequencer/rig.h"

namespace berth::testing {

inline constexpr uint64_t kObjectBytes = 4096;

struct StoringWorker {
  Caller caller;
  SessionId client;
  NamespaceId ns;

  // The next operation of the client: `count` objects from number `first`.
  Reserve reserve(uint64_t operation, uint32_t first, uint32_t count) const {
    Reserve reserve;
    reserve.id = {caller, client, operation, operation};
    reserve.namespace_id = ns;
    for (uint32_t i = first; i < first + count; ++i) {
      ObjectKey key;
      key.digest.bytes[0] = static_cast<uint8_t>(i);
      key.digest.bytes[1] = static_cast<uint8_t>(i >> 8);
      key.digest.bytes[15] = 1;
      key.namespace_number = static_cast<uint32_t>(ns.value());
      reserve.keys.push_back(key);
    }
    reserve.sizes = {kObjectBytes};
    return reserve;
  }
};

// Its pool has room for `objects`.
inline StoringWorker storing_worker(Rig& rig, uint32_t objects) {
  OpenWorker open;
  open.request_token = {1, 1};
  open.name = "w0";
  open.node = "n0";
  open.boot_id = {6, 6};
  StoringWorker worker;
  const SessionId session = rig.must<WorkerOpened>(open).session;
  worker.caller = {session,
                   rig.must<ReattachBegun>(BeginReattach{session, {6, 6}, 0, {}}).incarnation};
  while (rig.must<ReattachEnded>(EndReattach{worker.caller, {}}).more) continue;
  rig.must<Done>(LinkUp{worker.caller});
  RegisterPool pool;
  pool.caller = worker.caller;
  pool.spec.name = "cpu";
  pool.spec.capacity_bytes = pool.spec.backing_bytes = kObjectBytes * objects;
  pool.spec.page_bytes = kObjectBytes;
  rig.must<PoolRegistered>(pool);
  OpenClient join;
  join.caller = worker.caller;
  join.request_token = {2, 2};
  join.token = {3, 3};
  join.engine_id = "e0";
  worker.client = rig.must<ClientOpened>(join).session;
  worker.ns = rig.must<NamespaceOpened>(open_namespace("a")).id;
  return worker;
}

}  // namespace berth::testing
