// The database under a store that is closed, as a berthd of another version would see or leave it.
// Each call opens it and closes it again.
#pragma once

#include <rocksdb/db.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "server/store/codec.h"
#include "server/store/rocks_database.h"

namespace berth::testing {

inline void with_database(const std::string& directory,
                          const std::function<void(RocksDatabase&)>& act) {
  auto database = RocksDatabase::open({directory + "/store", 1 << 20, 64, nullptr});
  REQUIRE(database);
  act(**database);
}

inline void put_raw(RocksDatabase& database, Family family, const std::string& key,
                    const std::string& value) {
  REQUIRE(database.db().Put({}, database.handle(family), key, value).ok());
}

inline StoreHeader header_of(RocksDatabase& database) {
  std::string value;
  REQUIRE(
      database.db().Get({}, database.handle(Family::kMeta), std::string(kHeaderKey), &value).ok());
  return decode_header(value).value();
}

inline void put_header(RocksDatabase& database, const StoreHeader& header) {
  put_raw(database, Family::kMeta, std::string(kHeaderKey), encode_header(header));
}

// As a berthd of an older schema left it: without the families that it did not know.
inline void make_older(const std::string& directory, uint32_t schema,
                       std::initializer_list<Family> unknown) {
  with_database(directory, [&](RocksDatabase& database) {
    StoreHeader header = header_of(database);
    header.schema = schema;
    put_header(database, header);
    for (const Family family : unknown)
      REQUIRE(database.db().DropColumnFamily(database.handle(family)).ok());
  });
}

inline size_t records_of(const std::string& directory, Family family) {
  size_t count = 0;
  with_database(directory, [&](RocksDatabase& database) {
    const std::unique_ptr<rocksdb::Iterator> at = database.scan(family);
    for (at->SeekToFirst(); at->Valid(); at->Next()) ++count;
  });
  return count;
}

}  // namespace berth::testing
