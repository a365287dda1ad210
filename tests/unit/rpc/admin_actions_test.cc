// What an operator does, through the Admin service of a real server: each action's effect, and
// every field that can be wrong.
#include <catch2/catch.hpp>

#include "tests/unit/rpc/server_rig.h"

namespace berth::testing {
namespace {

using Admin = v1::Admin::Stub;
using Catch::Contains;

struct Fleet {
  ServerRig server;
  TestWorker worker{server};

  Fleet() { worker.set_up(); }

  // One chunk of six replicas; returns the first.
  uint64_t store(char digest) {
    const uint64_t first = worker.store(next_operation, digest);
    next_operation += 2;
    return first;
  }
  template <class Request, class Response>
  Response must(grpc::Status (Admin::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request) {
    const Result<Response> response = call(*server.admin, method, request);
    if (!response) FAIL(response.error().message);
    return *response;
  }
  template <class Request, class Response>
  std::string refusal(grpc::Status (Admin::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                      const Request& request) {
    const Result<Response> response = call(*server.admin, method, request);
    REQUIRE_FALSE(response);
    return std::string(name_of(response.error().reason)) + ": " + response.error().message;
  }
  v1::MissReason miss(char digest) {
    auto probe = worker.probe(std::string(16, digest));
    return call(*server.directory, &v1::Directory::Stub::Probe, probe)->miss_reason();
  }
  v1::PoolRow pool() { return must(&Admin::ListPools, v1::ListPoolsRequest()).pools(0); }
  v1::ExplainResponse explain(char digest) {
    v1::ExplainRequest request;
    request.set_namespace_name("llama");
    request.set_digest(std::string(16, digest));
    request.set_session(worker.client);
    return must(&Admin::Explain, request);
  }
  // The owner acknowledges every reclaim that it is asked for, until the pool is empty.
  void acknowledge() {
    while (pool().usage().allocated_bytes() > 0) {
      v1::LinkResponse message;
      if (worker.link->passed.empty()) {
        REQUIRE(worker.link->read(message));
      } else {
        message = worker.link->passed.front();
        worker.link->passed.erase(worker.link->passed.begin());
      }
      if (!message.has_reclaim()) continue;
      v1::LinkRequest ack;
      *ack.mutable_reclaim_ack()->mutable_replicas() = message.reclaim().replicas();
      REQUIRE(worker.link->stream->Write(ack));
      // An ACK has no answer; a command behind it has.
      v1::LinkRequest behind;
      *behind.mutable_open_namespace()->mutable_spec() = space_spec();
      worker.link->ask(behind);
    }
  }

  uint64_t next_operation = 1;
};

template <class Request>
Request chunks(const std::string& digests, const std::string& ns = "llama") {
  Request request;
  request.set_namespace_name(ns);
  request.set_digests(digests);
  return request;
}

const std::string kA(16, 'a');
const std::string kB(16, 'b');
const std::string kZ(16, 'z');

}  // namespace

TEST_CASE("chunks are evicted whole, and each one says what became of it", "[rpc][admin]") {
  Fleet fleet;
  fleet.store('a');
  fleet.store('b');
  CHECK(fleet.must(&Admin::Evict, chunks<v1::EvictRequest>(kA + kZ)).retired() ==
        std::string("\1\0", 2));
  CHECK(fleet.pool().usage().ready_replicas() == 6);
  CHECK(fleet.miss('a') == v1::MISS_REASON_RETIRING);
  CHECK(fleet.miss('b') == v1::MISS_REASON_UNSPECIFIED);
}

TEST_CASE("what an eviction cannot mean is refused by the field's name", "[rpc][admin]") {
  Fleet fleet;
  const auto refusal = [&](const v1::EvictRequest& request) {
    return fleet.refusal(&Admin::Evict, request);
  };
  CHECK_THAT(refusal({}), Contains("invalid_argument: replicas = 0 items: is empty"));
  auto both = chunks<v1::EvictRequest>(kA);
  both.add_replicas(1);
  CHECK_THAT(refusal(both), Contains("either replicas, or a namespace and digests"));
  CHECK_THAT(refusal(chunks<v1::EvictRequest>(kA, "")), Contains("namespace_name = \"\""));
  CHECK_THAT(refusal(chunks<v1::EvictRequest>(kA, "nobody")),
             Contains("unknown_namespace: namespace_name = \"nobody\""));
  CHECK_THAT(refusal(chunks<v1::EvictRequest>("short")),
             Contains("digests = 5 bytes") && Contains("digests of 16 bytes"));
  CHECK_THAT(refusal(chunks<v1::EvictRequest>("")), Contains("digests = 0 bytes"));
  // Six copies a chunk: 4096 chunks are within both bounds, one more is not.
  CHECK_THAT(refusal(chunks<v1::EvictRequest>(std::string(4097 * 16, 'x'))),
             Contains("digests = 4097 items") && Contains("1 to 4096"));
}

TEST_CASE("a namespace is evicted with its pins by a job that says whose it is", "[rpc][admin]") {
  Fleet fleet;
  fleet.store('a');
  auto pin = chunks<v1::PinRequest>(kA);
  pin.set_kind(v1::PIN_KIND_HARD);
  CHECK(fleet.must(&Admin::Pin, pin).pinned() == "\1");
  v1::EvictNamespaceRequest request;
  request.set_name("llama");
  CHECK(fleet.must(&Admin::EvictNamespace, request).job() != 0);
  CHECK(fleet.miss('a') == v1::MISS_REASON_RETIRING);
  fleet.acknowledge();
  CHECK(fleet.pool().usage().allocated_bytes() == 0);
  CHECK(fleet.must(&Admin::ListPins, v1::ListPinsRequest()).pins_size() == 0);
  fleet.store('a');
  CHECK(fleet.miss('a') == v1::MISS_REASON_UNSPECIFIED);

  request.set_name("nobody");
  CHECK_THAT(fleet.refusal(&Admin::EvictNamespace, request), Contains("unknown_namespace"));
  request.set_name("");
  CHECK_THAT(fleet.refusal(&Admin::EvictNamespace, request), Contains("name = \"\""));
}

TEST_CASE("a pool is trimmed to a target by its policy", "[rpc][admin]") {
  Fleet fleet;
  for (const char digest : {'a', 'b', 'c', 'd'}) fleet.store(digest);
  v1::TrimPoolRequest request;
  request.set_pool(fleet.worker.pool);
  request.set_target_bytes(12 * 4096);
  CHECK(fleet.must(&Admin::TrimPool, request).job() != 0);
  // It ends when the target is held; what left is in the owner's hands.
  while (fleet.must(&Admin::ListJobs, v1::ListJobsRequest()).jobs_size() > 0) continue;
  CHECK(fleet.pool().usage().ready_replicas() <= 12);
  CHECK(fleet.pool().usage().ready_replicas() > 0);

  request.set_pool(0);
  CHECK_THAT(fleet.refusal(&Admin::TrimPool, request), Contains("pool = 0: is missing"));
  request.set_pool(4242);
  CHECK_THAT(fleet.refusal(&Admin::TrimPool, request), Contains("invalid_argument"));
  request.set_target_bytes(uint64_t{1} << 60);
  CHECK_THAT(fleet.refusal(&Admin::TrimPool, request), Contains("target_bytes"));
}

TEST_CASE("a drained pool is hidden at once, empties and comes back", "[rpc][admin]") {
  Fleet fleet;
  fleet.store('a');
  v1::DrainRequest request;
  request.set_worker(fleet.worker.caller.session());
  const v1::DrainResponse drained = fleet.must(&Admin::Drain, request);
  REQUIRE(drained.pools_size() == 1);
  CHECK(drained.pools(0) == fleet.worker.pool);
  CHECK(drained.replicas_left() == 6);
  CHECK(fleet.miss('a') == v1::MISS_REASON_RETIRING);
  CHECK(fleet.pool().state() == v1::POOL_STATE_DRAINING);
  const auto jobs = fleet.must(&Admin::ListJobs, v1::ListJobsRequest());
  REQUIRE(jobs.jobs_size() == 1);
  CHECK(jobs.jobs(0).kind() == "drain_pool");
  CHECK(fleet.must(&Admin::Drain, request).pools_size() == 1);  // a repeat answers what is left
  fleet.acknowledge();
  CHECK(fleet.must(&Admin::Drain, request).replicas_left() == 0);

  v1::DrainRequest by_pool;
  by_pool.set_pool(fleet.worker.pool);
  CHECK(fleet.must(&Admin::Undrain, by_pool).pools(0) == fleet.worker.pool);
  CHECK(fleet.pool().state() == v1::POOL_STATE_LIVE);
  fleet.store('a');
  CHECK(fleet.miss('a') == v1::MISS_REASON_UNSPECIFIED);
}

TEST_CASE("a pool whose worker is away shows that it drains, and is taken back meanwhile",
          "[rpc][admin]") {
  Fleet fleet;
  v1::DrainRequest request;
  request.set_pool(fleet.worker.pool);
  fleet.must(&Admin::Drain, request);
  fleet.worker.link->stream->WritesDone();
  REQUIRE(fleet.worker.link->stream->Finish().ok());
  // Refused by the same queue that the stream's end came through before.
  REQUIRE_FALSE(call(*fleet.server.directory, &v1::Directory::Stub::Reserve,
                     from(fleet.worker, fleet.worker.reserve(1, 'k'))));
  CHECK(fleet.pool().state() == v1::POOL_STATE_UNVERIFIED);
  CHECK(fleet.pool().draining());
  fleet.must(&Admin::Undrain, request);
  CHECK_FALSE(fleet.pool().draining());
}

TEST_CASE("a drain names one thing that exists", "[rpc][admin]") {
  Fleet fleet;
  v1::DrainRequest request;
  CHECK_THAT(fleet.refusal(&Admin::Drain, request), Contains("either a pool or a worker session"));
  request.set_pool(fleet.worker.pool);
  request.set_worker(fleet.worker.caller.session());
  CHECK_THAT(fleet.refusal(&Admin::Undrain, request), Contains("names none or two things"));
  request.set_pool(0);
  request.set_worker(fleet.worker.client);
  CHECK_THAT(fleet.refusal(&Admin::Drain, request), Contains("unknown_session"));
}

TEST_CASE("pins are set, listed page by page, refuse an eviction and are taken off",
          "[rpc][admin]") {
  Fleet fleet;
  fleet.store('a');
  fleet.store('b');
  auto soft = chunks<v1::PinRequest>(kA + kZ);
  soft.set_kind(v1::PIN_KIND_SOFT);
  soft.set_ttl_ms(600'000);
  CHECK(fleet.must(&Admin::Pin, soft).pinned() == std::string("\1\0", 2));
  auto hard = chunks<v1::PinRequest>(kB);
  hard.set_kind(v1::PIN_KIND_HARD);
  fleet.must(&Admin::Pin, hard);
  CHECK(fleet.pool().usage().pinned_replicas() == 12);
  CHECK(fleet.pool().usage().hard_pin_bytes() == 6 * 4096);

  v1::ListPinsRequest list;
  list.set_limit(5);
  size_t soft_rows = 0;
  size_t hard_rows = 0;
  for (bool more = true; more;) {
    const auto page = fleet.must(&Admin::ListPins, list);
    for (const v1::PinRow& row : page.pins()) {
      CHECK(row.replica() > list.after());
      list.set_after(row.replica());
      CHECK(row.namespace_name() == "llama");
      CHECK(row.size_bytes() == 4000);
      CHECK(row.pool() == fleet.worker.pool);
      const bool is_soft = row.kind() == v1::PIN_KIND_SOFT;
      CHECK(row.digest() == (is_soft ? kA : kB));
      CHECK((is_soft ? row.expires_in_ms() > 0 : row.expires_in_ms() == -1));
      is_soft ? ++soft_rows : ++hard_rows;
    }
    more = page.more();
  }
  CHECK(soft_rows == 6);
  CHECK(hard_rows == 6);

  CHECK(fleet.must(&Admin::Evict, chunks<v1::EvictRequest>(kA + kB)).retired() == "\2\2");
  CHECK(fleet.must(&Admin::Unpin, chunks<v1::UnpinRequest>(kA + kZ)).unpinned() ==
        std::string("\1\0", 2));
  CHECK(fleet.must(&Admin::Evict, chunks<v1::EvictRequest>(kA + kB)).retired() == "\1\2");
}

TEST_CASE("hard pins stay under the low watermark of their pool", "[rpc][admin]") {
  Fleet fleet;
  fleet.store('a');
  v1::SetPolicyRequest low;
  low.mutable_policy()->set_low_permille(10);  // of 256 pages: 2
  fleet.must(&Admin::SetPolicy, low);
  auto hard = chunks<v1::PinRequest>(kA);
  hard.set_kind(v1::PIN_KIND_HARD);
  CHECK(fleet.must(&Admin::Pin, hard).pinned() == "\2");
  CHECK(fleet.pool().usage().pinned_replicas() == 0);
}

TEST_CASE("what a pin cannot mean is refused by the field's name", "[rpc][admin]") {
  Fleet fleet;
  auto request = chunks<v1::PinRequest>(kA);
  CHECK_THAT(fleet.refusal(&Admin::Pin, request), Contains("kind = 0") && Contains("1 to 2"));
  request.set_kind(v1::PIN_KIND_HARD);
  request.set_ttl_ms(1);
  CHECK_THAT(fleet.refusal(&Admin::Pin, request), Contains("ttl_ms = 1: is for soft pins only"));
  request.set_kind(v1::PIN_KIND_SOFT);
  request.set_ttl_ms(UINT64_MAX);
  CHECK_THAT(fleet.refusal(&Admin::Pin, request), Contains("ttl_ms") && Contains("is too long"));
  CHECK_THAT(fleet.refusal(&Admin::Pin, chunks<v1::PinRequest>(kA, "nobody")),
             Contains("unknown_namespace"));
  CHECK_THAT(fleet.refusal(&Admin::Unpin, chunks<v1::UnpinRequest>("")),
             Contains("digests = 0 bytes"));
  v1::ListPinsRequest list;
  list.set_limit(10'001);
  CHECK_THAT(fleet.refusal(&Admin::ListPins, list), Contains("limit = 10001"));
}

TEST_CASE("a policy is set piece by piece, survives a restart and is reset", "[rpc][admin]") {
  Fleet fleet;
  CHECK(fleet.must(&Admin::GetPolicy, {}).from_configuration());
  v1::SetPolicyRequest request;
  request.mutable_policy()->set_policy("s3fifo");
  CHECK(fleet.must(&Admin::SetPolicy, request).policy().high_permille() == 900);
  request.Clear();
  request.mutable_policy()->set_high_permille(850);
  const v1::EvictionPolicy set = fleet.must(&Admin::SetPolicy, request).policy();
  CHECK(set.policy() == "s3fifo");
  CHECK(set.high_permille() == 850);
  CHECK(set.low_permille() == 800);

  fleet.server.stop();
  fleet.server.start();
  const v1::GetPolicyResponse found = fleet.must(&Admin::GetPolicy, {});
  CHECK_FALSE(found.from_configuration());
  CHECK(found.policy().policy() == "s3fifo");
  CHECK(found.policy().high_permille() == 850);
  request.Clear();
  request.set_reset(true);
  CHECK(fleet.must(&Admin::SetPolicy, request).policy().policy() == "adaptive");
  CHECK(fleet.must(&Admin::GetPolicy, {}).from_configuration());
}

TEST_CASE("the policies of pools are shown with what they hold", "[rpc][admin]") {
  Fleet fleet;
  fleet.store('a');
  // Reported once a second.
  v1::GetPolicyResponse policy;
  do {
    policy = fleet.must(&Admin::GetPolicy, {});
  } while (policy.rows_size() == 0 || policy.rows(0).held_replicas() < 6);
  CHECK(policy.rows(0).pool() == fleet.worker.pool);
  CHECK(policy.rows(0).pool_name() == "cpu");
  CHECK(policy.rows(0).policy() == "adaptive");
  CHECK_FALSE(policy.rows(0).state().empty());
  CHECK(policy.memory_bytes() > 0);
}

TEST_CASE("what a policy cannot be is refused by the field's name", "[rpc][admin]") {
  Fleet fleet;
  const auto refusal = [&](const std::string& policy, uint32_t high, uint32_t low,
                           bool reset = false) {
    v1::SetPolicyRequest request;
    request.mutable_policy()->set_policy(policy);
    request.mutable_policy()->set_high_permille(high);
    request.mutable_policy()->set_low_permille(low);
    request.set_reset(reset);
    return fleet.refusal(&Admin::SetPolicy, request);
  };
  CHECK_THAT(refusal("", 0, 0), Contains("policy = empty: sets nothing"));
  CHECK_THAT(refusal("lru", 0, 0, true), Contains("given beside reset"));
  CHECK_THAT(refusal("mru", 0, 0),
             Contains("policy.policy = \"mru\"") && Contains("adaptive, lru, s3fifo or lfu_da"));
  CHECK_THAT(refusal("", 1001, 0), Contains("policy.high_permille = 1001"));
  CHECK_THAT(refusal("", 0, 1000), Contains("policy.low_permille = 1000"));
  // Against the one that is in force: high 900.
  CHECK_THAT(refusal("", 0, 900), Contains("invalid_argument") && Contains("below high"));
}

TEST_CASE("explain says what Probe says, why, and what became of copies that left",
          "[rpc][admin][explain]") {
  Fleet fleet;
  fleet.store('a');
  const v1::ExplainResponse hit = fleet.explain('a');
  CHECK(hit.hit());
  REQUIRE(hit.replicas_size() == 6);
  CHECK(hit.replicas(0).advice().empty());
  CHECK(hit.replicas(0).replica().pool_name() == "cpu");
  CHECK(hit.retired_size() == 0);

  fleet.must(&Admin::Evict, chunks<v1::EvictRequest>(kA));
  const v1::ExplainResponse evicted = fleet.explain('a');
  CHECK_FALSE(evicted.hit());
  CHECK(evicted.miss_reason() == fleet.miss('a'));
  CHECK(evicted.replicas(0).obstacle() == v1::MISS_REASON_RETIRING);
  CHECK_THAT(evicted.replicas(0).advice(), Contains("An operator evicted it"));
  REQUIRE(evicted.retired_size() == 6);
  CHECK(evicted.retired(0).reason() == "evicted");
  CHECK(evicted.retired(0).pool_name() == "cpu");
  fleet.acknowledge();
  const v1::ExplainResponse gone = fleet.explain('a');
  CHECK(gone.miss_reason() == v1::MISS_REASON_NOT_PRESENT);
  CHECK(gone.replicas_size() == 0);
  CHECK(gone.retired_size() == 6);

  // A second life: the newer end comes first.
  fleet.store('a');
  v1::DrainRequest drain;
  drain.set_pool(fleet.worker.pool);
  fleet.must(&Admin::Drain, drain);
  fleet.acknowledge();
  const v1::ExplainResponse twice = fleet.explain('a');
  REQUIRE(twice.retired_size() == 12);
  CHECK(twice.retired(0).reason() == "pool_draining");
  CHECK(twice.retired(11).reason() == "evicted");
}

TEST_CASE("a question that makes no sense is refused by the field's name",
          "[rpc][admin][explain]") {
  Fleet fleet;
  v1::ExplainRequest request;
  const auto refusal = [&] { return fleet.refusal(&Admin::Explain, request); };
  CHECK_THAT(refusal(), Contains("namespace_name = \"\""));
  request.set_namespace_name("llama");
  CHECK_THAT(refusal(), Contains("session = 0: is missing"));
  request.set_session(fleet.worker.client);
  CHECK_THAT(refusal(), Contains("digest = 0 bytes"));
  request.set_digest(kA + kB);
  CHECK_THAT(refusal(), Contains("digest = 2 items"));
  request.set_digest(kA);
  request.set_session(4242);
  CHECK_THAT(refusal(), Contains("unknown_session"));
  request.set_namespace_name("nobody");
  CHECK_THAT(refusal(), Contains("unknown_namespace"));
}

}  // namespace berth::testing
