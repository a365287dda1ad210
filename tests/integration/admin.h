// What an operator sees of a running server, through the Admin service: views as messages, and the
// few sums that the tests compare. Every call has a deadline; one that fails ends the test, except
// where the name says otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "common/error.h"
#include "common/time.h"

namespace berth::testing {

// A reader of the event stream that never reads; open as long as the object lives.
class IdleWatch {
 public:
  virtual ~IdleWatch() = default;
};

class Admin {
 public:
  // `address` as in configuration: "unix:/path" or "127.0.0.1:7420".
  explicit Admin(const std::string& address);
  ~Admin();

  // Nothing while the server does not answer.
  std::optional<v1::GetStatusResponse> try_status();
  std::optional<v1::GetUsageResponse> try_usage();
  bool is_serving();

  v1::GetStatusResponse status();
  v1::GetUsageResponse usage();
  // Of the pool of that name; fails when there is none. GONE pools of the same name are left out.
  v1::PoolRow pool(const std::string& name);
  std::vector<v1::SessionRow> sessions();
  std::optional<v1::SessionRow> session(const std::string& name);
  std::vector<v1::ReservationRow> reservations();
  std::vector<v1::LeaseRow> leases();
  std::vector<v1::ReplicaRow> objects(v1::ReplicaState state);
  // The events from `from` to the newest.
  std::vector<v1::Event> events(uint64_t from = 1);
  uint64_t count_events(const std::string& kind);

  // Opened: its first events are on their way.
  std::unique_ptr<IdleWatch> watch_idly();

  // Empty when every invariant holds.
  std::string check();
  uint64_t evict(const std::vector<uint64_t>& replicas);
  // Start durable jobs; each answers at once.
  void evict_namespace(const std::string& name);
  bool try_evict_namespace(const std::string& name);
  void drain(const std::string& pool_name);
  void undrain(const std::string& pool_name);
  bool try_drain(uint64_t pool);
  bool try_undrain(uint64_t pool);
  // Jobs that are under way.
  std::vector<v1::JobRow> jobs();
  // Evicts one of so many READY replicas; false when the server cannot now.
  bool try_evict_one_of(uint64_t share);

 private:
  struct Stub;
  std::unique_ptr<Stub> stub_;
};

}  // namespace berth::testing
