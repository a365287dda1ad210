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
    OpenWorker open = worker_command("w0");
    open.request_token = {8, ++next_token};
    open.life_lock_held = true;
    opened = must<WorkerOpened>(open);
    drain_jobs();
    Worker next{opened.session, opened.incarnation};
    reattach(next);
    return next;
  }
  OpenClient resume_command(const Worker& through, const std::string& life_name) {
    OpenClient open;
    open.caller = through.caller();
    open.request_token = {9, ++next_token};
    open.engine_id = "engine-1";
    open.life_name = life_name;
    open.resume_session = client;
    open.resume_token = directory.find<Session>(client)->token;
    return open;
  }
};

TEST_CASE_METHOD(Resume, "every life lock of a resumed client is named, also the ones before",
                 "[directory][session]") {
  WorkerOpened opened;
  const Worker second = successor(opened);
  must<ClientOpened>(resume_command(second, "second.life"));
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
    must<ClientOpened>(resume_command(worker, std::to_string(i) + ".life"));
  CHECK(refused(resume_command(worker, "8.life")) == Reason::kUnknownSession);
}

}  // namespace
}  // namespace berth
