// What a caller may get wrong, over the wire: each a clear refusal that names the field and the
// accepted form, after which nothing has changed.
#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"
#include "tests/integration/raw_worker.h"

namespace berth::testing {
namespace {

using Stub = v1::Directory::Stub;

// A server with a worker that the test speaks by hand. Its heartbeats are never due.
struct Rig {
  Rig() : cluster(tuning()), worker(cluster.server.address(), "raw") {}

  static ServerTuning tuning() {
    ServerTuning tuning;
    tuning.heartbeat_deadline = seconds(600);
    tuning.batch_items_max = 64;
    return tuning;
  }

  std::string state() {
    // Events follow their answers; with the answer of a further command those before it are told.
    cluster.server.admin().evict({1});
    return cluster.server.admin().usage().ShortDebugString() +
           std::to_string(cluster.server.admin().status().event_sequence());
  }

  Cluster cluster;
  RawWorker worker;
};

template <class Value>
void check_refused(const Result<Value>& result, Reason reason, const std::string& part) {
  REQUIRE_FALSE(result);
  CHECK(name_of(result.error().reason) == name_of(reason));
  CHECK_THAT(result.error().message, Catch::Contains(part));
}

}  // namespace

TEST_CASE("bad requests are refused by field and change nothing", "[integration][FC-38]") {
  Rig rig;
  RawWorker& worker = rig.worker;
  const std::string before = rig.state();
  const auto invalid = Reason::kInvalidArgument;

  // Digests of the wrong width.
  for (const size_t width : {15u, 33u}) {
    const std::string digests = RawWorker::digest('a', width);
    check_refused(worker.reserve(worker.reserve_request(1, digests)), invalid, "digests");
    check_refused(worker.acquire(worker.acquire_request(1, digests)), invalid, "16 bytes");
  }
  check_refused(worker.reserve(worker.reserve_request(1, "")), invalid, "digests");

  // A batch past its bound.
  check_refused(worker.reserve(worker.reserve_request(1, RawWorker::digest('a', 65 * 16))), invalid,
                "64 items");
  check_refused(worker.acquire(worker.acquire_request(1, RawWorker::digest('a', 65 * 16))), invalid,
                "64 items");

  // Sizes.
  v1::ReserveRequest sized = worker.reserve_request(1, RawWorker::digest('a', 32));
  sized.set_sizes(0, 0);
  check_refused(worker.reserve(sized), invalid, "sizes = 0");
  sized.set_sizes(0, uint64_t{1} << 63);
  check_refused(worker.reserve(sized), invalid, "sizes = 9223372036854775808");
  sized.clear_sizes();
  check_refused(worker.reserve(sized), invalid, "sizes");
  sized.add_sizes(4096);
  sized.add_sizes(4096);
  sized.add_sizes(4096);
  check_refused(worker.reserve(sized), invalid, "3 elements");

  // Columns, numbers and names that do not fit.
  v1::ReserveRequest odd = worker.reserve_request(0, RawWorker::digest('a'));
  check_refused(worker.reserve(odd), invalid, "operation");
  odd.set_operation(1);
  odd.add_shards(1);
  check_refused(worker.reserve(odd), invalid, "shards = 1");
  odd.clear_shards();
  odd.set_namespace_id(0);
  check_refused(worker.reserve(odd), invalid, "namespace_id");
  odd.set_namespace_id(999);
  check_refused(worker.reserve(odd), Reason::kUnknownNamespace, "999");
  odd.set_namespace_id(worker.name_space());
  odd.set_write_deadline_ms(3'600'001);
  check_refused(worker.reserve(odd), invalid, "write_deadline_ms");

  // A caller that is not who it says.
  v1::ReserveRequest stranger = worker.reserve_request(1, RawWorker::digest('a'));
  *stranger.mutable_caller() = worker.caller();
  stranger.set_client_session(worker.client());
  stranger.mutable_caller()->set_token(RawWorker::digest('x'));
  check_refused(worker.plain_call(&Stub::Reserve, stranger), Reason::kWrongToken, "token");
  *stranger.mutable_caller() = worker.caller();
  stranger.set_client_session(worker.client() + 1000);
  check_refused(worker.plain_call(&Stub::Reserve, stranger), Reason::kUnknownSession, "session");

  CHECK(rig.state() == before);
  CHECK(rig.cluster.server.admin().check() == "");
}

TEST_CASE("a namespace that is opened with one field changed is refused by the field's name",
          "[integration]") {
  Rig rig;
  const std::string before = rig.state();
  const auto open_with = [&](auto change) {
    v1::OpenNamespaceRequest request;
    *request.mutable_spec() = RawWorker::namespace_spec();
    change(*request.mutable_spec());
    return rig.worker.plain_call(&Stub::OpenNamespace, request);
  };
  const auto mismatch = Reason::kNamespaceMismatch;
  check_refused(open_with([](auto& s) { s.set_model("test-model@2"); }), mismatch, "model");
  check_refused(open_with([](auto& s) { s.set_adapter("lora"); }), mismatch, "adapter");
  check_refused(open_with([](auto& s) { s.set_application("chat"); }), mismatch, "application");
  check_refused(open_with([](auto& s) { s.set_tokenizer("bpe"); }), mismatch, "tokenizer");
  check_refused(open_with([](auto& s) { s.set_dtype("fp8_e4m3"); }), mismatch, "dtype");
  check_refused(open_with([](auto& s) { s.set_layers(31); }), mismatch, "layers");
  check_refused(open_with([](auto& s) { s.set_kv_heads(4); }), mismatch, "kv_heads");
  check_refused(open_with([](auto& s) { s.set_head_dim(64); }), mismatch, "head_dim");
  check_refused(open_with([](auto& s) { s.set_storage_format("x"); }), mismatch, "storage_format");
  check_refused(open_with([](auto& s) { s.set_storage_version(2); }), mismatch, "storage_version");
  check_refused(open_with([](auto& s) { s.set_chunk_tokens(32); }), mismatch, "chunk_tokens");
  check_refused(open_with([](auto& s) { s.set_tensor_parallel(2); }), mismatch, "tensor_parallel");
  check_refused(open_with([](auto& s) { s.set_pipeline_parallel(2); }), mismatch,
                "pipeline_parallel");
  check_refused(open_with([](auto& s) { s.set_shards(2); }), mismatch, "shards");
  check_refused(open_with([](auto& s) { s.set_parts(2); }), mismatch, "parts");
  check_refused(open_with([](auto& s) { s.set_digest_bytes(32); }), mismatch, "digest_bytes");

  const auto invalid = Reason::kInvalidArgument;
  check_refused(open_with([](auto& s) { s.set_digest_bytes(15); }), invalid, "16 to 32");
  check_refused(open_with([](auto& s) { s.set_digest_bytes(33); }), invalid, "16 to 32");
  check_refused(open_with([](auto& s) { s.set_name(""); }), invalid, "name");
  check_refused(open_with([](auto& s) { s.set_name("../raw"); }), invalid, "name");
  CHECK(rig.state() == before);
  CHECK(open_with([](auto&) {})->namespace_id() == rig.worker.name_space());
}

TEST_CASE("an operation number that is used again with other content is refused", "[integration]") {
  Rig rig;
  RawWorker& worker = rig.worker;
  const auto first = worker.reserve(worker.reserve_request(1, RawWorker::digest('a')));
  REQUIRE(first);
  const auto again = worker.reserve(worker.reserve_request(1, RawWorker::digest('a')));
  REQUIRE(again);
  CHECK(again->SerializeAsString() == first->SerializeAsString());
  const std::string before = rig.state();
  check_refused(worker.reserve(worker.reserve_request(1, RawWorker::digest('b'))),
                Reason::kOperationMismatch, "1");
  check_refused(worker.acquire(worker.acquire_request(1, RawWorker::digest('a'))),
                Reason::kOperationMismatch, "1");
  CHECK(rig.state() == before);
}

TEST_CASE("the finish of a given up attempt never lands on the next one", "[integration][FC-07]") {
  Rig rig;
  RawWorker& worker = rig.worker;
  const std::string key = RawWorker::digest('k');
  uint64_t operation = 1;
  for (int round = 0; round < 20; ++round) {
    const auto first = worker.reserve(worker.reserve_request(operation++, key));
    REQUIRE(first);
    CHECK(worker.abort({first->first_replica()})->freed() == std::string(1, '\1'));
    const auto second = worker.reserve(worker.reserve_request(operation++, key));
    REQUIRE(second);
    CHECK(second->first_replica() != first->first_replica());

    const auto late =
        worker.commit(worker.commit_request(operation++, {first->first_replica()}, 0));
    REQUIRE(late);
    CHECK(late->codes() != std::string(1, v1::COMMIT_CODE_COMMITTED));
    CHECK(worker.abort({first->first_replica()})->freed() == std::string(1, '\0'));
    CHECK(worker.probe(key) == 0);
    CHECK(worker.abort({second->first_replica()})->freed() == std::string(1, '\1'));
  }
  const auto last = worker.reserve(worker.reserve_request(operation++, key));
  REQUIRE(last);
  const auto landed = worker.commit(worker.commit_request(operation++, {last->first_replica()}, 0));
  REQUIRE(landed);
  CHECK(landed->codes() == std::string(1, v1::COMMIT_CODE_COMMITTED));
  CHECK(worker.probe(key) == 1);
  CHECK(rig.cluster.server.admin().check() == "");
}

TEST_CASE("a lease that is released twice takes nobody else's protection away",
          "[integration][FC-04]") {
  Rig rig;
  RawWorker& worker = rig.worker;
  const std::string key = RawWorker::digest('k');
  const auto reserved = worker.reserve(worker.reserve_request(1, key));
  REQUIRE(reserved);
  REQUIRE(worker.commit(worker.commit_request(2, {reserved->first_replica()}, 0)));
  const auto a = worker.acquire(worker.acquire_request(3, key));
  const auto b = worker.acquire(worker.acquire_request(4, key));
  REQUIRE(a);
  REQUIRE(b);
  CHECK(worker.release({a->lease()})->released() == std::string(1, '\1'));
  for (int i = 0; i < 4; ++i)
    CHECK(worker.release({a->lease()})->released() == std::string(1, '\0'));
  v1::RenewRequest renew;
  renew.add_leases(a->lease());
  renew.add_leases(b->lease());
  CHECK(worker.call(&Stub::Renew, renew)->renewed() == std::string("\0\1", 2));

  Admin& admin = rig.cluster.server.admin();
  CHECK(admin.evict({reserved->first_replica()}) == 1);
  CHECK(admin.pool("raw-cpu").usage().retiring_bytes() == RawWorker::kPage);
  CHECK(admin.pool("raw-cpu").usage().leased_replicas() == 1);
  CHECK(worker.release({b->lease()})->released() == std::string(1, '\1'));
  CHECK(admin.pool("raw-cpu").usage().leased_replicas() == 0);
  CHECK(admin.check() == "");
}

TEST_CASE("a worker that speaks another protocol version is told both ranges", "[integration]") {
  Rig rig;
  v1::OpenSessionRequest open;
  open.mutable_versions()->set_newest(99);
  open.mutable_versions()->set_oldest(98);
  open.set_role(v1::ROLE_WORKER);
  open.set_request_token(RawWorker::digest('n'));
  open.set_worker_name("newer");
  open.set_node("node-raw");
  open.set_boot_id(RawWorker::digest('b'));
  const auto opened = rig.worker.plain_call(&Stub::OpenSession, open);
  check_refused(opened, Reason::kUnsupportedVersion, "98");
  check_refused(opened, Reason::kUnsupportedVersion, "1");
}

}  // namespace berth::testing
