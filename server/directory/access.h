// Who can reach a pool's bytes: the one place that knows what a scope means. Probe, acquire and
// reserve all ask here, so that what is stored for somebody is also what that somebody can read.
// A HOST pool is read through its owner, or through a worker that said that it imported it.
#pragma once

#include <algorithm>
#include <string>

#include "server/directory/records.h"

namespace berth {

// Who reads or writes: the worker it goes through and its engine id.
struct Reader {
  SessionId worker;
  std::string engine;
};

inline bool can_reach(const Pool& pool, const Reader& reader) {
  switch (pool.spec.scope) {
    case Scope::kProcess:
      return pool.owner == reader.worker && pool.spec.engine == reader.engine;
    case Scope::kHost:
      return pool.owner == reader.worker ||
             std::any_of(pool.exports.begin(), pool.exports.end(), [&](const PoolExport& e) {
               return e.imported && e.importer == reader.worker;
             });
    case Scope::kDomain:
      return false;  // no session has proven that it maps the domain
  }
  return false;
}

}  // namespace berth
