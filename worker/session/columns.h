// The columns of a store batch, checked and read by item. A column has one element an item, or one
// for all, or none where zero is the default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/v1/directory.pb.h"
#include "berth/v1/worker.pb.h"
#include "common/error.h"

namespace berth::worker {

// 1 to batch_items_max. Errors: kInvalidArgument naming the column.
Result<> check_batch(std::string_view column, size_t items, const v1::Limits& limits);

// How many digests of the namespace's width these bytes are. Errors: kInvalidArgument.
Result<size_t> count_digests(const std::string& digests, uint32_t digest_bytes,
                             const v1::Limits& limits);

// The number of items when every column fits. Errors: kInvalidArgument naming the column.
Result<size_t> count_store_items(const v1::BeginStoreRequest& request, uint32_t digest_bytes,
                                 const v1::Limits& limits);

// Columns that were checked. Refers to the request.
class StoreColumns {
 public:
  StoreColumns(const v1::ReserveRequest& request, uint32_t digest_bytes)
      : request_(request), digest_bytes_(digest_bytes) {}

  size_t size() const { return request_.digests().size() / digest_bytes_; }
  std::string_view digest(size_t item) const {
    return std::string_view(request_.digests()).substr(item * digest_bytes_, digest_bytes_);
  }
  uint32_t shard(size_t item) const { return element(request_.shards(), item); }
  uint32_t part(size_t item) const { return element(request_.parts(), item); }
  uint64_t size_bytes(size_t item) const { return element(request_.sizes(), item); }

 private:
  template <class T>
  static T element(const google::protobuf::RepeatedField<T>& column, size_t item) {
    if (column.empty()) return 0;
    return column.size() == 1 ? column.Get(0) : column.Get(static_cast<int>(item));
  }

  const v1::ReserveRequest& request_;
  uint32_t digest_bytes_;
};

}  // namespace berth::worker
