// What the services stand on, put together once by RpcEndpoint. All of it outlives the services and
// every call, and each part may be used from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "common/clock.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/item_metrics.h"
#include "server/rpc/link_table.h"
#include "server/rpc/stream_table.h"
#include "server/rpc/translate.h"
#include "server/sequencer/sequencer.h"

namespace berth::rpc {

struct RpcConfig {
  // Link, Reattach and WatchEvents streams at once. Beyond: limit_reached.
  uint32_t streams_max = 2048;
  // Requests of one Link that wait for their answer. Beyond: queue_full.
  uint32_t link_requests_max = 4096;
  // Messages that wait to be written to one Link. Beyond, the peer does not read: it is ended.
  uint32_t link_messages_max = 8192;
};

struct Backend {
  RpcConfig config;
  Sequencer& sequencer;
  LinkTable& links;
  StreamTable& streams;
  CallMetrics& metrics;
  ItemMetrics& items;
  const Clock& clock;
  std::function<Token()> fresh_token;

  // Valid as long as `view` is held.
  RequestContext context(const DirectoryView& view, Caller caller = {}, Token token = {}) const {
    return {*view, sequencer.config().directory, caller, token};
  }
};

}  // namespace berth::rpc
