#include "server/sequencer/decide.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/sequencer/rig.h"

namespace berth {
namespace {

using testing::open_namespace;

Decision decide_all(const Directory& directory, const std::vector<Command>& commands) {
  return decide(directory, DirectoryConfig(), commands, Time{10});
}

Directory started() {
  Directory directory;
  install(directory, decide_all(directory, {Restart{{1, 1}}}));
  return directory;
}

TEST_CASE("a decision leaves the directory as it was until it is installed",
          "[sequencer][decide]") {
  Directory directory = started();
  const Decision decision = decide_all(directory, {open_namespace("a"), open_namespace("b")});
  CHECK(directory.namespaces().empty());
  install(directory, decision);
  CHECK(directory.namespaces().size() == 2);
}

TEST_CASE("commands of a batch see each other, and are answered in their order",
          "[sequencer][decide]") {
  const Directory directory = started();
  const Decision decision =
      decide_all(directory, {open_namespace("a"), open_namespace("a"), open_namespace("b")});
  REQUIRE(decision.outcomes.size() == 3);
  const auto id = [&](size_t i) {
    return std::get<NamespaceOpened>(decision.outcomes[i].value()).id;
  };
  CHECK(id(0) == id(1));
  CHECK(id(2) != id(0));
  CHECK(decision.mutations.size() == 2);
}

TEST_CASE("a refused command leaves no trace between those that are not", "[sequencer][decide]") {
  const Directory directory = started();
  const Decision decision =
      decide_all(directory, {open_namespace("a", 1), open_namespace("a", 2), open_namespace("b")});
  CHECK(decision.outcomes[0]);
  REQUIRE_FALSE(decision.outcomes[1]);
  CHECK(decision.outcomes[1].error().reason == Reason::kNamespaceMismatch);
  CHECK(decision.outcomes[2]);
  CHECK(decision.mutations.size() == 2);
  CHECK(decision.events.size() == 2);
}

TEST_CASE("only durable changes are for the store, and only identity asks for an fsync",
          "[sequencer][decide]") {
  Directory directory = started();
  OpenWorker open;
  open.request_token = {5, 5};
  open.name = "w0";
  open.node = "n0";
  open.boot_id = {6, 6};
  const Decision opened = decide_all(directory, {open});
  REQUIRE(opened.outcomes[0]);
  CHECK(opened.is_durable);
  CHECK(opened.sync);
  install(directory, opened);

  const SessionId worker = std::get<WorkerOpened>(*opened.outcomes[0]).session;
  const Decision soft = decide_all(directory, {LinkDown{worker, 1}});
  REQUIRE(soft.outcomes[0]);
  CHECK_FALSE(soft.mutations.empty());
  CHECK_FALSE(soft.is_durable);
  CHECK_FALSE(soft.sync);

  const Decision nothing = decide_all(directory, {Tick{}});
  CHECK(nothing.mutations.empty());
  CHECK_FALSE(nothing.is_durable);
}

}  // namespace
}  // namespace berth
