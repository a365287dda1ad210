#include "server/ctl/name_lookup.h"

#include <algorithm>

#include "common/text.h"
#include "server/ctl/pages.h"

namespace berth::ctl {
namespace {

Answer<std::vector<v1::SessionRow>> all_sessions(AdminClient& client) {
  auto listed = fetch_pages<v1::SessionRow>(
      client, v1::ListSessionsRequest{}, 0,
      [](auto& response) { return response.mutable_sessions(); },
      [](const auto&, const std::vector<v1::SessionRow>& rows) {
        return rows.empty() ? 0 : rows.back().session();
      });
  if (!listed) return fail(std::move(listed.error()));
  return std::move(listed->rows);
}

tl::unexpected<Failure> fail_lookup(std::string_view argument, const std::string& text,
                                    const std::string& what, std::string advice) {
  return fail(
      {ExitCode::kRefused, name_and_value(argument, text) + ": " + what, std::move(advice), ""});
}

// Zero when the text is no id.
uint64_t id_or_zero(const std::string& text) { return id_value_from_text("", text).value_or(0); }

// "w0/cpu": the pool of that name, of the worker of that name. Memory of a dead owner is left out.
bool is_named(const v1::PoolRow& row, const std::string& text) {
  return row.state() != v1::POOL_STATE_GONE && row.owner_name() + "/" + row.spec().name() == text;
}

const v1::PoolRow* pool_among(const std::vector<v1::PoolRow>& pools, const std::string& text) {
  const uint64_t id = id_or_zero(text);
  const auto found = std::find_if(pools.begin(), pools.end(), [&](const v1::PoolRow& row) {
    return id != 0 ? row.pool() == id : is_named(row, text);
  });
  return found == pools.end() ? nullptr : &*found;
}

}  // namespace

Answer<std::vector<v1::PoolRow>> all_pools(AdminClient& client) {
  auto listed = fetch_pages<v1::PoolRow>(
      client, v1::ListPoolsRequest{}, 0, [](auto& response) { return response.mutable_pools(); },
      [](const auto&, const std::vector<v1::PoolRow>& rows) {
        return rows.empty() ? 0 : rows.back().pool();
      });
  if (!listed) return fail(std::move(listed.error()));
  return std::move(listed->rows);
}

Answer<v1::PoolRow> find_pool(AdminClient& client, std::string_view argument,
                              const std::string& text) {
  const auto pools = all_pools(client);
  if (!pools) return fail(pools.error());
  if (const v1::PoolRow* pool = pool_among(*pools, text)) return *pool;
  return fail_lookup(argument, text, "no such pool; accepted: a pool's id, or WORKER/POOL",
                     "`berthctl pools` lists them.");
}

Answer<v1::DrainRequest> find_pool_or_worker(AdminClient& client, std::string_view argument,
                                             const std::string& text) {
  v1::DrainRequest request;
  const auto pools = all_pools(client);
  if (!pools) return fail(pools.error());
  if (const v1::PoolRow* pool = pool_among(*pools, text)) {
    request.set_pool(pool->pool());
    return request;
  }
  const auto sessions = all_sessions(client);
  if (!sessions) return fail(sessions.error());
  const uint64_t id = id_or_zero(text);
  for (const v1::SessionRow& session : *sessions)
    if (session.role() == v1::ROLE_WORKER &&
        (id != 0 ? session.session() == id : session.name() == text)) {
      request.set_worker(session.session());
      return request;
    }
  return fail_lookup(argument, text,
                     "no such pool or worker; accepted: a pool's id, WORKER/POOL, or a worker's "
                     "name or session id",
                     "`berthctl pools` and `berthctl sessions` list them.");
}

Answer<v1::SessionRow> find_session(AdminClient& client, std::string_view argument,
                                    const std::string& text) {
  const auto sessions = all_sessions(client);
  if (!sessions) return fail(sessions.error());
  const uint64_t id = id_or_zero(text);
  std::vector<const v1::SessionRow*> found;
  for (const v1::SessionRow& session : *sessions)
    if (id != 0 ? session.session() == id : session.name() == text) found.push_back(&session);
  if (found.size() == 1) return *found.front();
  if (found.empty())
    return fail_lookup(argument, text,
                       "no such session; accepted: a session's id, or the name of a worker or "
                       "engine",
                       "`berthctl sessions` lists them.");
  std::string ids;
  for (const v1::SessionRow* session : found)
    ids += (ids.empty() ? "" : ", ") + id_text(session->session()) + " at " +
           quote(session->worker_name().empty() ? session->node() : session->worker_name());
  return fail_lookup(argument, text, "several sessions have this name: " + ids,
                     "Name one of them by its id.");
}

}  // namespace berth::ctl
