// A client that comes back has a new life lock beside its old ones, and the server cannot know
// whether the new descriptor ever reached it.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Resume : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  SessionId client = join(worker);

  // A worker process that took the life lock of the one before.
  Worker successor(WorkerOpened& opened) {
    OpenWorker open = successor_command("w0");
    open.request_token = {8, ++next_token};
    opened = must<WorkerOpened>(open);
    drain_jobs();
    Worker next{opened.session, opened.incarnation};
    reattach(next);
    return next;
  }
};

TEST_CASE_METHOD(Resume, "every life lock of a resumed client is named, also the ones before",
                 "[directory][session]") {
  WorkerOpened opened;
  const Worker second = successor(opened);
  must<ClientOpened>(resume_command(second, client, "second.life"));
  const PoolId pool = open_pool(second);
  successor(opened);
  std::set<std::string> names;
  for (const ClientLeft& left : opened.predecessor_clients) {
    CHECK(left.session == client);
    names.insert(left.life_name);
  }
  CHECK(names == std::set<std::string>{"engine-1.life", "second.life"});
  bool found = false;
  for (const OrphanPool& orphan : opened.orphan_pools) {
    if (orphan.pool != pool) continue;
    found = true;
    CHECK(orphan.importers == std::vector<std::string>{"engine-1.life", "second.life"});
  }
  CHECK(found);
}

TEST_CASE_METHOD(Resume, "the life locks of one client are bounded: past that it joins anew",
                 "[directory][session]") {
  for (int i = 1; i < 8; ++i)
    must<ClientOpened>(resume_command(worker, client, std::to_string(i) + ".life"));
  CHECK(refused(resume_command(worker, client, "8.life")) == Reason::kUnknownSession);
}

}  // namespace
}  // namespace berth
