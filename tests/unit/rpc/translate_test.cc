#include "server/rpc/translate.h"

#include <catch2/catch.hpp>
#include <functional>
#include <variant>
#include <vector>

#include "common/text.h"
#include "tests/unit/rpc/translate_fixture.h"

namespace berth::testing {
namespace {

using Catch::Contains;

// A request that was right, made wrong in one place, and what the refusal must name.
struct Wrong {
  std::function<void(v1::LinkRequest&)> spoil;
  std::string field;
  std::string accepted;
};

}  // namespace

TEST_CASE_METHOD(TranslateFixture, "a Reserve becomes keys, sizes and a deadline",
                 "[rpc][translate]") {
  auto request = reserve_request();
  request.mutable_reserve()->set_write_deadline_ms(2500);
  const auto command = translate(request);
  REQUIRE(command);
  const auto& reserve = std::get<Reserve>(*command);
  CHECK(reserve.id.caller.session == kWorker);
  CHECK(reserve.id.client == kClient);
  CHECK(reserve.id.operation == 1);
  CHECK(reserve.write_within == milliseconds(2500));
  REQUIRE(reserve.keys.size() == 2);
  CHECK(reserve.keys[0].digest.bytes[0] == 'a');
  CHECK(reserve.keys[0].digest.bytes[16] == 0);
  CHECK(reserve.keys[1].digest.bytes[15] == 'b');
  CHECK(reserve.keys[1].shard == 1);
  CHECK(reserve.keys[1].part == 0);
  CHECK(reserve.keys[1].namespace_id() == kSpace);
  CHECK(reserve.sizes == std::vector<uint64_t>{4096});
}

TEST_CASE_METHOD(TranslateFixture, "a Reserve that makes no sense is refused by field and form",
                 "[rpc][translate]") {
  const std::vector<Wrong> wrongs{
      {[](auto& r) { r.mutable_reserve()->set_client_session(0); }, "client_session = 0", "an id"},
      {[](auto& r) { r.mutable_reserve()->set_operation(0); }, "operation = 0", "1 or more"},
      {[](auto& r) { r.mutable_reserve()->set_namespace_id(0); }, "namespace_id = 0", "an id"},
      {[](auto& r) { r.mutable_reserve()->set_digests(std::string(15, 'x')); },
       "digests = 15 bytes", "digests of 16 bytes"},
      {[](auto& r) { r.mutable_reserve()->set_digests(std::string(33, 'x')); },
       "digests = 33 bytes", "digests of 16 bytes"},
      {[](auto& r) { r.mutable_reserve()->clear_digests(); }, "digests = 0 bytes", "one or more"},
      {[](auto& r) { r.mutable_reserve()->set_digests(std::string(16 * 5000, 'x')); },
       "digests = 5000 items", "1 to 4096 items"},
      {[](auto& r) { r.mutable_reserve()->add_shards(0); }, "shards = 3 elements",
       "none, 1, or 2 elements"},
      {[](auto& r) { r.mutable_reserve()->set_shards(1, 2); }, "shards = 2", "0 to 1"},
      {[](auto& r) { r.mutable_reserve()->add_parts(3); }, "parts = 3", "0 to 2"},
      {[](auto& r) { r.mutable_reserve()->clear_sizes(); }, "sizes = 0 elements",
       "1 or 2 elements"},
      {[](auto& r) { r.mutable_reserve()->set_sizes(0, 0); }, "sizes = 0", "1 to 1073741824"},
      {[](auto& r) { r.mutable_reserve()->set_sizes(0, uint64_t{1} << 63); },
       "sizes = 9223372036854775808", "1 to 1073741824"},
      {[](auto& r) { r.mutable_reserve()->set_write_deadline_ms(4'000'000'000); },
       "write_deadline_ms = 4000000000", "0 to 600000 milliseconds"},
      {[](auto& r) { r.mutable_reserve()->mutable_caller(); }, "caller", "left out"},
  };
  for (const Wrong& wrong : wrongs) {
    auto request = reserve_request();
    wrong.spoil(request);
    INFO(request.ShortDebugString());
    CHECK_THAT(refusal(request),
               Contains(wrong.field) && Contains("accepted: ") && Contains(wrong.accepted));
    CHECK(translate(request).error().reason == Reason::kInvalidArgument);
  }
}

TEST_CASE_METHOD(TranslateFixture, "an unknown namespace is refused as such", "[rpc][translate]") {
  auto request = reserve_request();
  request.mutable_reserve()->set_namespace_id(77);
  CHECK(translate(request).error().reason == Reason::kUnknownNamespace);
}

TEST_CASE_METHOD(TranslateFixture, "commits, aborts and acquires are refused by field and form",
                 "[rpc][translate]") {
  struct Case {
    v1::LinkRequest request;
    Wrong wrong;
  };
  v1::LinkRequest abort;
  abort.mutable_abort()->set_client_session(kClient.value());
  v1::LinkRequest renew;
  renew.mutable_renew()->set_client_session(kClient.value());
  renew.mutable_renew()->add_leases(5);
  const std::vector<Case> cases{
      {commit_request(),
       {[](auto& r) { r.mutable_commit()->add_offsets(1); }, "offsets = 3 elements", "2 elements"}},
      {commit_request(),
       {[](auto& r) { r.mutable_commit()->clear_replicas(); }, "replicas = 0 items",
        "1 to 4096 items"}},
      {commit_request(),
       {[](auto& r) { r.mutable_commit()->set_offsets(0, ~uint64_t{0}); },
        "offsets = 18446744073709551615", "0 to "}},
      {abort, {[](auto&) {}, "replicas = 0 items", "1 to 4096 items"}},
      {renew,
       {[](auto& r) { r.mutable_renew()->set_ttl_ms(4'000'000); }, "ttl_ms = 4000000",
        "0 to 3600000 milliseconds"}},
      {acquire_request(),
       {[](auto& r) {
          r.mutable_acquire()->add_targets()->set_session(9);
          r.mutable_acquire()->add_targets()->set_session(9);
        },
        "targets.shard = 0", "one target a shard"}},
      {acquire_request(),
       {[](auto& r) { r.mutable_acquire()->add_targets()->set_shard(2); }, "targets.shard = 2",
        "0 to 1"}},
      {acquire_request(),
       {[](auto& r) { r.mutable_acquire()->add_targets()->set_shard(1); }, "targets.session = 0",
        "an id"}},
  };
  for (const Case& c : cases) {
    auto request = c.request;
    c.wrong.spoil(request);
    INFO(request.ShortDebugString());
    CHECK_THAT(refusal(request), Contains(c.wrong.field) && Contains(c.wrong.accepted));
  }
}

TEST_CASE_METHOD(TranslateFixture,
                 "a chain whose locations would not fit into one answer is refused",
                 "[rpc][translate]") {
  NamespaceSpec wide = rpc::namespace_spec_from_wire(space_spec()).value();
  wide.name = "wide";
  wide.shards = 64;
  wide.parts = 64;
  directory.install(
      std::vector<Mutation>{put_of(Namespace{NamespaceId(2), wide, {8, 8}, 0, ReplicaId()})});
  auto request = acquire_request();
  request.mutable_acquire()->set_namespace_id(2);
  request.mutable_acquire()->set_digests(std::string(16 * 16, 'd'));
  CHECK(refusal(request).empty());
  request.mutable_acquire()->set_digests(std::string(16 * 17, 'd'));
  CHECK_THAT(refusal(request), Contains("digests = 17 chunks") && Contains("at most 16 chunks"));
}

TEST_CASE_METHOD(TranslateFixture, "a pool is refused by field and form", "[rpc][translate]") {
  const auto spec = [](v1::LinkRequest& r) { return r.mutable_register_pool()->mutable_spec(); };
  const std::vector<Wrong> wrongs{
      {[&](auto& r) { spec(r)->set_name(".hidden"); }, "spec.name = \".hidden\"", "1 to 64"},
      {[&](auto& r) { spec(r)->clear_name(); }, "spec.name = \"\"", "1 to 64"},
      {[&](auto& r) { spec(r)->clear_medium(); }, "spec.medium = 0", "1 to 3"},
      {[&](auto& r) { spec(r)->set_medium(static_cast<v1::Medium>(9)); }, "spec.medium = 9",
       "1 to 3"},
      {[&](auto& r) { spec(r)->set_tier(static_cast<v1::Tier>(3)); }, "spec.tier = 3", "1 to 2"},
      {[&](auto& r) { spec(r)->clear_scope(); }, "spec.scope = 0", "1 to 3"},
      {[&](auto& r) { spec(r)->set_engine("e"); }, "spec.engine = e", "empty"},
      {[&](auto& r) { spec(r)->set_scope(v1::SCOPE_DOMAIN); }, "spec.access_domain = \"\"",
       "the domain's name"},
      {[&](auto& r) { spec(r)->set_page_bytes(5000); }, "spec.page_bytes = 5000", "a power of two"},
      {[&](auto& r) { spec(r)->set_page_bytes(2048); }, "spec.page_bytes = 2048", "4096 to"},
      {[&](auto& r) { spec(r)->set_capacity_bytes((1 << 20) + 1); },
       "spec.capacity_bytes = 1048577", "a multiple of 4096"},
      {[&](auto& r) { spec(r)->set_capacity_bytes(~uint64_t{0}); },
       "spec.capacity_bytes = 18446744073709551615", "4096 to"},
      {[&](auto& r) { spec(r)->set_budget_bytes(1 << 21); }, "spec.budget_bytes = 2097152",
       "1 to 1048576"},
      {[&](auto& r) { spec(r)->set_backing_bytes(4096); }, "spec.backing_bytes = 4096",
       "1048576 to"},
      {[&](auto& r) { spec(r)->set_pinned_bytes(1 << 21); }, "spec.pinned_bytes = 2097152",
       "0 to 1048576"},
  };
  for (const Wrong& wrong : wrongs) {
    auto request = register_pool_request();
    wrong.spoil(request);
    INFO(request.ShortDebugString());
    CHECK_THAT(refusal(request), Contains(wrong.field) && Contains(wrong.accepted));
  }
  const auto pool = std::get<RegisterPool>(translate(register_pool_request()).value());
  CHECK(pool.spec.budget_bytes == pool.spec.capacity_bytes);
}

TEST_CASE_METHOD(TranslateFixture, "a session is refused by field and form", "[rpc][translate]") {
  using Spoil = std::function<void(v1::OpenSessionRequest&)>;
  struct Case {
    bool is_worker;
    Spoil spoil;
    std::string field;
  };
  const std::vector<Case> cases{
      {true, [](auto& r) { r.clear_role(); }, "role = 0"},
      {true, [](auto& r) { r.clear_versions(); }, "versions.newest = 0"},
      {true, [](auto& r) { r.set_request_token("short"); }, "request_token = 5 bytes"},
      {true, [](auto& r) { r.set_request_token(std::string(16, '\0')); },
       "request_token = all zero"},
      {true, [](auto& r) { r.set_worker_name("a/b"); }, "worker_name = \"a/b\""},
      {true, [](auto& r) { r.clear_node(); }, "node = \"\""},
      {true, [](auto& r) { r.set_boot_id(std::string(15, 'b')); }, "boot_id = 15 bytes"},
      {true, [](auto& r) { r.set_store_id_seen("x"); }, "store_id_seen = 1 bytes"},
      {true, [](auto& r) { r.set_epoch_seen(1u << 24); }, "epoch_seen = 16777216"},
      {true,
       [](auto& r) {
         for (int i = 0; i < 65; ++i) r.add_access_domains("d");
       },
       "access_domains = 65 names"},
      {true, [](auto& r) { r.add_write_order("no spaces"); }, "write_order = \"no spaces\""},
      {false, [](auto& r) { r.set_engine_id(std::string(65, 'e')); }, "engine_id = "},
      {false, [](auto& r) { r.set_life_name("../up"); }, "life_name = \"../up\""},
      {false, [](auto& r) { r.set_resume_session(5); }, "resume_token = 0 bytes"},
      {false, [](auto& r) { r.set_resume_token(std::string(16, 't')); }, "resume_session = 0"},
  };
  for (const Case& c : cases) {
    auto request = c.is_worker ? open_worker_request() : open_client_request();
    CHECK(rpc::to_command(request, context()));
    c.spoil(request);
    INFO(request.ShortDebugString());
    const auto command = rpc::to_command(request, context());
    REQUIRE_FALSE(command);
    CHECK_THAT(command.error().message, Contains(c.field) && Contains("accepted: "));
  }
}

TEST_CASE_METHOD(TranslateFixture, "fresh chance comes in with the command", "[rpc][translate]") {
  const auto worker =
      std::get<OpenWorker>(rpc::to_command(open_worker_request(), context()).value());
  CHECK(worker.token == Token{5, 6});
  const auto client =
      std::get<OpenClient>(rpc::to_command(open_client_request(), context()).value());
  CHECK(client.token == Token{5, 6});
  CHECK(client.caller.session == kWorker);
}

TEST_CASE_METHOD(TranslateFixture,
                 "an opened session is told its version, also when it was fenced at once",
                 "[rpc][translate]") {
  v1::OpenSessionResponse worker;
  rpc::fill(&worker, WorkerOpened{.session = SessionId(4711), .version = 1}, context());
  CHECK(worker.version() == 1);
  v1::OpenSessionResponse client;
  rpc::fill(&client, ClientOpened{.session = SessionId(4711), .version = 1}, context());
  CHECK(client.version() == 1);
}

TEST_CASE_METHOD(TranslateFixture, "a Link opens clients and takes one hello only",
                 "[rpc][translate]") {
  v1::LinkRequest worker;
  *worker.mutable_open_client() = open_worker_request();
  CHECK_THAT(refusal(worker), Contains("role = 1") && Contains("ROLE_CLIENT"));
  v1::LinkRequest hello;
  hello.mutable_hello();
  CHECK_THAT(refusal(hello), Contains("hello"));
  CHECK_THAT(refusal(v1::LinkRequest()), Contains("body"));
}

TEST_CASE_METHOD(TranslateFixture, "the content of an operation is what it asks, not who asks it",
                 "[rpc][translate]") {
  const auto hash_of = [&](const v1::LinkRequest& request, Caller caller) {
    auto where = context();
    where.caller = caller;
    return std::get<Reserve>(rpc::to_command(request, where).value()).id.content_hash;
  };
  const auto first = hash_of(reserve_request(), {kWorker, 1});
  CHECK(hash_of(reserve_request(), {SessionId(8), 9}) == first);
  auto renumbered = reserve_request();
  renumbered.mutable_reserve()->set_operation(44);
  CHECK(hash_of(renumbered, {kWorker, 1}) == first);
  auto other = reserve_request();
  other.mutable_reserve()->set_sizes(0, 4097);
  CHECK(hash_of(other, {kWorker, 1}) != first);
  // The same numbers in other columns are other content.
  auto moved = reserve_request();
  moved.mutable_reserve()->clear_shards();
  moved.mutable_reserve()->add_parts(0);
  moved.mutable_reserve()->add_parts(1);
  CHECK(hash_of(moved, {kWorker, 1}) != first);
}

TEST_CASE("a namespace is the same in every spelling and other in every field",
          "[rpc][translate]") {
  const auto fingerprint = [](const v1::NamespaceSpec& spec) {
    return rpc::fingerprint_of(rpc::namespace_spec_from_wire(spec).value());
  };
  const Fingerprint base = fingerprint(space_spec());
  auto spelled = space_spec();
  spelled.set_tensor_parallel(1);
  spelled.set_pipeline_parallel(1);
  CHECK(fingerprint(spelled) == base);

  const auto* type = v1::NamespaceSpec::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    auto changed = space_spec();
    const auto* reflection = changed.GetReflection();
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING)
      reflection->SetString(&changed, field, reflection->GetString(changed, field) + "x");
    else
      reflection->SetUInt32(&changed, field, reflection->GetUInt32(changed, field) + 2);
    INFO(field->name());
    CHECK(fingerprint(changed) != base);
  }
  // Neighbouring texts do not run into each other.
  auto left = space_spec();
  left.set_adapter("ab");
  auto right = space_spec();
  right.set_adapter("a");
  right.set_tokenizer("b");
  CHECK(fingerprint(left) != fingerprint(right));
}

TEST_CASE("a namespace's fingerprint never changes, because ledgers hold it", "[rpc][translate]") {
  const auto spec = rpc::namespace_spec_from_wire(space_spec()).value();
  CHECK(to_hex(rpc::fingerprint_of(spec)) == "ed355cea42e61dcd8b5efc700726efe2");
}

TEST_CASE("a namespace is refused by field and form", "[rpc][translate]") {
  using Spoil = std::function<void(v1::NamespaceSpec&)>;
  const std::vector<std::pair<Spoil, std::string>> cases{
      {[](auto& s) { s.clear_name(); }, "spec.name = \"\""},
      {[](auto& s) { s.set_name(std::string(129, 'n')); }, "spec.name"},
      {[](auto& s) { s.clear_model(); }, "spec.model = \"\""},
      {[](auto& s) { s.set_model("two\nlines"); }, "spec.model = \"two\\nlines\""},
      {[](auto& s) { s.set_dtype(std::string(257, 'd')); }, "spec.dtype"},
      {[](auto& s) { s.clear_chunk_tokens(); }, "spec.chunk_tokens = 0"},
      {[](auto& s) { s.set_chunk_tokens(65537); }, "spec.chunk_tokens = 65537"},
      {[](auto& s) { s.set_shards(1025); }, "spec.shards = 1025"},
      {[](auto& s) { s.set_parts(1025); }, "spec.parts = 1025"},
      {[](auto& s) { s.set_shards(1024), s.set_parts(1024); }, "spec.shards * spec.parts"},
      {[](auto& s) { s.set_digest_bytes(15); }, "spec.digest_bytes = 15"},
      {[](auto& s) { s.set_digest_bytes(33); }, "spec.digest_bytes = 33"},
  };
  for (const auto& [spoil, field] : cases) {
    auto spec = space_spec();
    spoil(spec);
    const auto read = rpc::namespace_spec_from_wire(spec);
    INFO(field);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message, Contains(field) && Contains("accepted: "));
  }
}

TEST_CASE_METHOD(TranslateFixture, "a chunk of a ledger has columns of one length",
                 "[rpc][translate]") {
  v1::LedgerChunk good;
  good.set_pool(9);
  good.set_namespace_fingerprint(rpc::bytes_of(directory.find<Namespace>(kSpace)->fingerprint));
  good.set_digest_bytes(16);
  good.add_replicas(21);
  good.set_digests(std::string(16, 'q'));
  good.add_shards(1);
  good.add_parts(2);
  good.add_offsets(8192);
  good.add_sizes(100);
  good.add_states(v1::LEDGER_STATE_SEALED);
  const auto read = rpc::to_command(good, true, context());
  REQUIRE(read);
  REQUIRE(read->rows.size() == 1);
  CHECK(read->foreign_store);
  CHECK(read->rows[0].replica == ReplicaId(21));
  CHECK(read->rows[0].digest.bytes[15] == 'q');
  CHECK(read->rows[0].part == 2);
  CHECK(read->rows[0].state == LedgerState::kSealed);

  using Spoil = std::function<void(v1::LedgerChunk&)>;
  const std::vector<std::pair<Spoil, std::string>> cases{
      {[](auto& c) { c.add_shards(1); }, "shards = 2 elements"},
      {[](auto& c) { c.clear_parts(); }, "parts = 0 elements"},
      {[](auto& c) { c.add_offsets(1); }, "offsets = 2 elements"},
      {[](auto& c) { c.add_sizes(1); }, "sizes = 2 elements"},
      {[](auto& c) { c.clear_states(); }, "states = 0 elements"},
      {[](auto& c) { c.set_states(0, static_cast<v1::LedgerState>(6)); }, "states = 6"},
      {[](auto& c) { c.set_digests(std::string(17, 'q')); }, "digests = 17 bytes"},
      {[](auto& c) { c.set_digest_bytes(32), c.set_digests(std::string(32, 'q')); },
       "digest_bytes = 32"},
      {[](auto& c) { c.set_namespace_fingerprint("short"); }, "namespace_fingerprint = 5 bytes"},
      {[](auto& c) { c.clear_pool(); }, "pool = 0"},
      {[](auto& c) { c.set_sizes(0, 0); }, "sizes = 0"},
      {[](auto& c) { c.Clear(); }, "replicas = 0 items"},
  };
  for (const auto& [spoil, field] : cases) {
    auto chunk = good;
    spoil(chunk);
    const auto spoiled = rpc::to_command(chunk, false, context());
    INFO(field);
    REQUIRE_FALSE(spoiled);
    CHECK_THAT(spoiled.error().message, Contains(field));
  }
}

TEST_CASE_METHOD(TranslateFixture, "a chunk may hold leases alone", "[rpc][translate]") {
  v1::LedgerChunk chunk;
  v1::HeldLease& lease = *chunk.add_leases();
  lease.set_lease(31);
  lease.set_client_session(kClient.value());
  lease.set_operation(4);
  lease.add_replicas(21);
  const auto read = rpc::to_command(chunk, false, context());
  REQUIRE(read);
  REQUIRE(read->leases.size() == 1);
  CHECK(read->leases[0].replicas == std::vector<ReplicaId>{ReplicaId(21)});
}

TEST_CASE_METHOD(TranslateFixture, "probes miss while the store is degraded", "[rpc][translate]") {
  v1::ProbeRequest request;
  request.set_client_session(kClient.value());
  request.set_namespace_id(kSpace.value());
  request.set_digests(std::string(16, 'p'));
  v1::ProbeResponse response;
  REQUIRE(rpc::answer(request, true, context(), &response));
  CHECK(response.usable_chunks() == 0);
  CHECK(response.miss_reason() == v1::MISS_REASON_STORE_DEGRADED);
  response.Clear();
  REQUIRE(rpc::answer(request, false, context(), &response));
  CHECK(response.miss_reason() == v1::MISS_REASON_NOT_PRESENT);
}

TEST_CASE_METHOD(TranslateFixture, "nobody asks in the name of another worker's client",
                 "[rpc][translate]") {
  v1::ResolveRequest resolve;
  resolve.set_client_session(kStranger.value());
  resolve.set_operation(1);
  v1::ResolveResponse response;
  CHECK(rpc::answer(resolve, context(), &response).error().reason == Reason::kPermissionDenied);
  resolve.set_client_session(12345);
  CHECK(rpc::answer(resolve, context(), &response).error().reason == Reason::kUnknownSession);
  resolve.set_client_session(kClient.value());
  REQUIRE(rpc::answer(resolve, context(), &response));
  CHECK(response.outcome() == v1::ResolveResponse::OUTCOME_UNKNOWN);
}

TEST_CASE_METHOD(TranslateFixture, "outcomes come back in their columns", "[rpc][translate]") {
  v1::LinkResponse response;
  rpc::fill(&response, v1::LinkRequest::kReserve,
            Reserved{{1, 4, 1}, ReplicaId(50), {PoolId(6), PoolId(7)}}, context());
  CHECK(response.reserve().codes() == std::string("\1\4\1"));
  CHECK(response.reserve().first_replica() == 50);
  CHECK(response.reserve().pools_size() == 2);

  Acquired acquired;
  acquired.lease = LeaseId(8);
  acquired.classes = {2};
  acquired.replicas = {
      Replica{.id = ReplicaId(50), .pool = PoolId(6), .offset = 4096, .size_bytes = 10}};
  acquired.miss = MissReason::kIncomplete;
  rpc::fill(&response, v1::LinkRequest::kAcquire, acquired, context());
  CHECK(response.acquire().lease() == 8);
  CHECK(response.acquire().chunks() == 1);
  CHECK(response.acquire().offsets(0) == 4096);
  CHECK(response.acquire().miss_reason() == v1::MISS_REASON_INCOMPLETE);
}

TEST_CASE("an ask names what it is about", "[rpc][translate]") {
  const auto cancel = rpc::to_message(
      {kWorker, Ask::Kind::kCancel, kClient, 5, LeaseId(), {ReplicaId(1), ReplicaId(2)}});
  CHECK(cancel.cancel().client_session() == kClient.value());
  CHECK(cancel.cancel().operation() == 5);
  CHECK(cancel.cancel().replicas_size() == 2);
  const auto revoke = rpc::to_message({kWorker, Ask::Kind::kRevoke, kClient, 6, LeaseId(9), {}});
  CHECK(revoke.revoke().lease() == 9);
  CHECK(rpc::to_message({kWorker, Ask::Kind::kClientFenced, kClient, 0, LeaseId(), {}})
            .client_fenced()
            .client_session() == kClient.value());
}

}  // namespace berth::testing
