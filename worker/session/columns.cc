#include "worker/session/columns.h"

namespace berth::worker {
namespace {

enum class Empty : uint8_t { kAllowed, kRefused };

Result<> check_column(std::string_view name, int elements, size_t items, Empty empty) {
  const auto count = static_cast<size_t>(elements);
  if (count == items || count == 1 || (count == 0 && empty == Empty::kAllowed)) return {};
  return refuse(Reason::kInvalidArgument, std::string(name) + " has " + std::to_string(count) +
                                              " elements for " + std::to_string(items) +
                                              " items; accepted: one for each, or one for all" +
                                              (empty == Empty::kAllowed ? ", or none" : ""));
}

}  // namespace

Result<> check_batch(std::string_view column, size_t items, const v1::Limits& limits) {
  if (items >= 1 && items <= limits.batch_items_max()) return {};
  return refuse(Reason::kInvalidArgument, std::string(column) + " names " + std::to_string(items) +
                                              " items; accepted: 1 to batch_items_max = " +
                                              std::to_string(limits.batch_items_max()));
}

Result<size_t> count_digests(const std::string& digests, uint32_t digest_bytes,
                             const v1::Limits& limits) {
  if (digests.size() % digest_bytes != 0) {
    return refuse(Reason::kInvalidArgument,
                  "digests has " + std::to_string(digests.size()) +
                      " bytes; accepted: a multiple of the namespace's width, " +
                      std::to_string(digest_bytes));
  }
  const size_t items = digests.size() / digest_bytes;
  if (const auto bound = check_batch("digests", items, limits); !bound) {
    return tl::unexpected(bound.error());
  }
  return items;
}

Result<size_t> count_store_items(const v1::BeginStoreRequest& request, uint32_t digest_bytes,
                                 const v1::Limits& limits) {
  const auto items = count_digests(request.digests(), digest_bytes, limits);
  if (!items) return items;
  for (const auto& checked :
       {check_column("sizes", request.sizes_size(), *items, Empty::kRefused),
        check_column("shards", request.shards_size(), *items, Empty::kAllowed),
        check_column("parts", request.parts_size(), *items, Empty::kAllowed)}) {
    if (!checked) return tl::unexpected(checked.error());
  }
  for (const uint64_t size_bytes : request.sizes()) {
    if (size_bytes == 0 || size_bytes > limits.object_bytes_max()) {
      return refuse(Reason::kInvalidArgument, "sizes holds " + std::to_string(size_bytes) +
                                                  "; accepted: 1 to object_bytes_max = " +
                                                  std::to_string(limits.object_bytes_max()));
    }
  }
  return items;
}

}  // namespace berth::worker
