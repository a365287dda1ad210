// The options that our access pattern asks for: written in the order of ids, one batch at a time,
// hardly read but at start. Private to server/store.
#pragma once

#include <rocksdb/options.h>

#include <cstdint>
#include <memory>

#include "server/store/codec.h"

namespace berth {

rocksdb::DBOptions database_options(uint64_t memtable_bytes, uint32_t open_files_max);
// When records of a family are read: when the store is loaded, or single ones at any time.
enum class Reads : uint8_t { kAtStart, kAnyTime };
rocksdb::ColumnFamilyOptions family_options(uint64_t memtable_bytes, Reads reads);

}  // namespace berth
