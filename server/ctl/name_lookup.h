// What an operator may call a pool or a session: its id, or the name that people gave it. Asks the
// server for the present rows; an id goes before a name, and a name that fits several is refused
// with their ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/ctl/admin_client.h"

namespace berth::ctl {

Answer<std::vector<v1::PoolRow>> all_pools(AdminClient& client);

// A pool by id or "WORKER/POOL".
Answer<v1::PoolRow> find_pool(AdminClient& client, std::string_view argument,
                              const std::string& text);
// The same, or a worker by name or session id: one of the two is set.
Answer<v1::DrainRequest> find_pool_or_worker(AdminClient& client, std::string_view argument,
                                             const std::string& text);
// A session by id, or by the name of its worker or engine.
Answer<v1::SessionRow> find_session(AdminClient& client, std::string_view argument,
                                    const std::string& text);

}  // namespace berth::ctl
