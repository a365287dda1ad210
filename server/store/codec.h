// Between the directory's records and what lies in RocksDB: family, key and value. Knows no
// RocksDB.
//
// Keys are big-endian, so that a family reads back in the order in which its ids were made. Values
// are the messages of proto/berth/store/v1/records.proto. Decoding trusts nothing: what does not
// fit a record is kStoreCorrupt.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/time.h"
#include "server/directory/mutation.h"

namespace berth {

// Column families. Their names are on disk.
enum class Family : uint8_t {
  kMeta,
  kNamespaces,
  kSessions,
  kPools,
  kReplicas,
  kLeases,
  kTasks,
  kOperations,
  kJobs,
  kPins,
  kRuns,  // see rocks_runs.h
};
inline constexpr std::array<std::string_view, 11> kFamilyNames{
    "meta",  "namespaces", "sessions", "pools", "replicas", "leases",
    "tasks", "operations", "jobs",     "pins",  "runs"};

// Raised when a record changes its meaning; then an older store is migrated at start, and a newer
// one refused. 2: pins, the eviction setting, and what evicts a namespace, which an older berthd
// would pass over. 3: runs, and columns with one value for all. Each newer one reads what the older
// ones wrote, so opening a store makes it one of the newest.
inline constexpr uint32_t kStoreSchema = 3;

// Where a store was made, so that a copy of it can be told from it: a file that no copy has. See
// origin.h.
struct Origin {
  uint64_t inode = 0;
  uint64_t born_nanos = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct StoreHeader {
  uint32_t schema = kStoreSchema;
  Meta meta;
  std::string written_by;
  Origin origin;
};

inline constexpr std::string_view kHeaderKey = "store";
inline constexpr std::string_view kClockKey = "clock";
inline constexpr std::string_view kEvictionKey = "eviction";

std::string encode_header(const StoreHeader& header);
Result<StoreHeader> decode_header(std::string_view value);
std::string encode_clock(Time now);
Result<Time> decode_clock(std::string_view value);

// Keys. Ids are big-endian; what a first id alone does not tell apart has a suffix, which sorts
// behind that id and before the next.
inline constexpr size_t kIdKeyBytes = 8;
inline constexpr char kKeySuffix = '\xFF';
std::string key_of_id(uint64_t id);
uint64_t id_of_key(std::string_view key);  // its first eight bytes

// kStoreCorrupt, naming the record.
Error unreadable_record(Family family, std::string_view key);

// One change of one family. The views belong to the codec and hold until its next call.
struct EncodedChange {
  Family family = Family::kMeta;
  std::string_view key;
  std::string_view value;
  bool is_forgotten = false;
};

// Keeps its messages and buffers, because a batch may hold thousands of records. Not thread-safe.
class Codec {
 public:
  Codec();
  ~Codec();

  // Nothing for what is never stored this way: soft records, replicas of an open reservation, and
  // Meta, which goes into the header.
  std::optional<EncodedChange> encode(const Mutation& mutation);

  // A record of any family; of meta the eviction setting only. Errors: kStoreCorrupt naming family
  // and key.
  Result<Mutation> decode(Family family, std::string_view key, std::string_view value);

 private:
  struct Messages;
  std::unique_ptr<Messages> messages_;
  std::string key_;
  std::string value_;
};

}  // namespace berth
