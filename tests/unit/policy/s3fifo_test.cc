#include "server/policy/s3fifo.h"

#include <catch2/catch.hpp>

#include "tests/unit/policy/pool_of.h"

namespace berth::policy {
namespace {

TEST_CASE("s3fifo drops a stream of new chunks and keeps what was used again",
          "[policy][eviction]") {
  PoolOf pool(EvictionKind::kS3Fifo, 10);
  pool.requests({"ab", "ab", "cdefghij", "klmnopqrstuvwxyz"});
  CHECK(pool.resident().substr(0, 2) == "ab");
}

TEST_CASE("s3fifo takes a chunk that comes back soon straight into the main queue",
          "[policy][eviction]") {
  PoolOf pool(EvictionKind::kS3Fifo, 10);
  pool.request("abcdefghij").request("k");  // a leaves, and is remembered
  CHECK(pool.resident() == "bcdefghijk");
  pool.request("a").request("lmnopqrstuvwxyz");
  CHECK(pool.resident().find('a') != std::string::npos);
}

TEST_CASE("s3fifo forgets a ghost after as many evictions as the pool holds",
          "[policy][eviction]") {
  PoolOf pool(EvictionKind::kS3Fifo, 4);
  pool.request("abcd").request("e");  // a leaves
  pool.request("fghijk");             // and six more
  pool.request("a").request("lmno");  // a is new again, and goes with the others
  CHECK(pool.resident() == "lmno");
}

}  // namespace
}  // namespace berth::policy
