// A worker of the fleet as far as berthd sees it, spoken by hand over the public protocol: session,
// re-attach, Link with heartbeats and reclaims, one pool that has no memory behind it, and one
// client. It has channels of its own.
//
//   attach ─▶ load() and the workloads ─▶ (the server restarts ─▶ attach again, with its ledger)
//
// After attach() everything runs under the event loop's mutex.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/v1/directory.grpc.pb.h"
#include "common/address.h"
#include "common/error.h"
#include "tests/bench/rpc/bidi_stream.h"
#include "tests/bench/rpc/low_water.h"

namespace berth::bench {

struct MemberSpec {
  uint64_t number = 1;  // its objects' space; not zero
  Address server;
  uint64_t budget_bytes = 0;         // of its pool; zero: never full
  std::string population_namespace;  // of what is there from the beginning
};

// What the workloads of all members store, and the bench evicts again.
inline constexpr const char* kStoreNamespace = "bench-store";

// What a workload stores: objects that stay, or that the bench evicts again.
enum class Objects : uint8_t { kPopulation, kPassing };

// Gets the answer to a request on the Link.
class LinkAnswer {
 public:
  virtual ~LinkAnswer() = default;
  virtual void on_answer(const v1::LinkResponse& answer) = 0;
  virtual void on_link_ended(const Error& why) = 0;
};

class Member final : BidiStream<v1::LinkRequest, v1::LinkResponse>::Owner {
 public:
  // Errors: of any step, with its name.
  static Result<std::unique_ptr<Member>> attach(EventLoop& loop, const MemberSpec& spec);

  v1::Directory::Stub& stub() { return *stub_; }
  const v1::Caller& caller() const { return caller_; }
  uint64_t number() const { return spec_.number; }
  uint64_t session() const { return caller_.session(); }
  uint64_t client() const { return client_; }
  uint64_t population_namespace() const { return population_namespace_; }
  uint64_t store_namespace() const { return store_namespace_; }

  // Numbered operations of the client, and the pages that its objects lie in.
  uint64_t take_operation() { return operations_.take(); }
  void answered(uint64_t operation);
  uint64_t take_pages(uint64_t count);
  // Objects that were never stored: of the population, or of what comes and goes.
  uint64_t take_objects(Objects kind, uint64_t count);

  // On the Link: the slot of who asks; it has one request under way at a time, and none at the end.
  uint64_t add_asker(LinkAnswer& asker);
  void remove_asker(uint64_t slot);
  void ask(v1::LinkRequest& request, uint64_t slot);

  void beat();
  void cancel() { link_.cancel(); }

  // ---- Objects that are there from the beginning; they are this member's ledger ----
  uint64_t population() const { return population_; }
  void committed(uint64_t first_object, uint64_t first_replica, uint64_t first_offset,
                 uint64_t count);

  // The server was restarted: states the ledger again and opens a new Link. Blocks; without the
  // mutex. Errors: as attach().
  Result<> attach_again();
  bool is_linked() const { return is_linked_; }

 private:
  struct Run {  // of the ledger: consecutive replicas in consecutive pages
    uint64_t first_object;
    uint64_t first_replica;
    uint64_t first_offset;
    uint64_t count;
  };

  Member(EventLoop& loop, const MemberSpec& spec) : loop_(loop), spec_(spec) {}
  Result<> open_session();
  Result<> reattach();
  Result<> open_link();
  void leave_link();
  Result<> open_rest();
  Result<uint64_t> open_namespace(const std::string& name, std::string* fingerprint);
  void on_message(const v1::LinkResponse& message) override;
  void on_ended(const grpc::Status& status) override;
  void tell_low_water();

  EventLoop& loop_;
  const MemberSpec spec_;
  std::unique_ptr<v1::Directory::Stub> stub_;
  v1::Caller caller_;
  std::string token_;
  uint64_t pool_ = 0;
  uint64_t client_ = 0;
  uint64_t population_namespace_ = 0;
  uint64_t store_namespace_ = 0;
  std::string population_fingerprint_;

  LowWater operations_;
  uint64_t low_water_told_ = 0;
  uint64_t heartbeats_ = 0;
  uint64_t pages_ = 0;
  uint64_t objects_ = 0;  // of the population that were taken
  uint64_t passing_objects_ = 0;
  uint64_t population_ = 0;
  std::vector<Run> ledger_;

  BidiStream<v1::LinkRequest, v1::LinkResponse> link_{*this};
  v1::LinkRequest hello_;
  bool is_linked_ = false;
  std::promise<Result<>> welcomed_;
  bool awaits_welcome_ = false;
  std::optional<std::promise<void>> link_ended_;  // while there is a Link, welcomed or not
  std::vector<LinkAnswer*> askers_;               // by slot - 1
  std::vector<bool> is_asking_;
};

}  // namespace berth::bench
