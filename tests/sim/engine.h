// One simulated engine: what a client library and the process that links it do, by the book but at
// the worst moments. It writes and reads its spans page by page, over many steps, and at each step
// the pages must be what they should be.
//
// It crashes, forks, stands still, leaves, repeats itself and mixes its numbers up. What it never
// does is touch a span after it has said that it will not: that is the contract under test.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/objects.h"
#include "tests/sim/worker.h"

namespace berth::sim {

class Engine {
 public:
  Engine(Hub& hub, Worker& worker, std::string engine_id);

  // ---- The process ----
  void start();
  void crash();
  void fork();  // a child inherits the life locks
  void end_fork();
  void end_all_forks();  // the host went down
  void stand_still() { scheduling_.stop(); }
  void go_on() { scheduling_.go_on(); }
  bool is_running() const { return running_; }
  bool is_standing_still() const { return scheduling_.is_stopped(); }
  uint64_t run() const { return run_; }
  Worker& worker() { return worker_; }

  // ---- What it does; each does nothing where it makes no sense now ----
  void join();
  void store();
  void write();
  void finish();
  void give_up();
  void load();
  void read();
  void release();
  void renew();
  void probe();
  void repeat();
  void reuse_number();
  void leave();
  void break_stream();
  // Ends what it has open, then leaves. True once it is gone for good.
  bool wind_up();
  // Why it is not gone, for people.
  std::string standing() const;

  // ---- From the operator ----
  // Its session was fenced although it lives. Its writers have stopped: the operator saw to that.
  // Its readers go on for a while, and nothing protects what they read.
  void operator_fenced(SessionId session);

  // ---- From its worker ----
  bool welcomed(uint64_t run, ProcessKey key, worker::JoinId join, const v1::JoinWelcome& welcome,
                const std::vector<std::shared_ptr<Pages>>& memory, const std::string& life_name);
  void pushed(uint64_t run, ProcessKey key, worker::JoinId join, const v1::JoinResponse& message);
  void join_ended(uint64_t run, ProcessKey key, worker::JoinId join, const Error& error);
  // It may map a pool of another worker.
  void pool_added(uint64_t run, ProcessKey key, worker::JoinId join, worker::ImportId import,
                  PoolId pool);

 private:
  struct Item {  // a granted one
    ReplicaId replica;
    std::shared_ptr<Pages> pages;
    uint64_t first = 0;
    uint64_t count = 0;
    uint64_t written = 0;
    uint64_t hash = 0;
    uint32_t position = 0;  // of its chunk in the request
    bool open = true;       // may still be touched
  };
  struct Store {
    OperationNumber operation = 0;
    std::vector<Item> items;
    bool is_finishing = false;
  };
  // A pool of another worker. Its life lock is let go when it is unmapped: when neither the engine
  // nor a handle of its has this any more.
  struct ImportedMapping {
    ImportedMapping(Hub& hub_in, PoolId pool_in, Worker::ImportedPool mapped);
    ~ImportedMapping();
    void stop_watching();

    Hub& hub;
    const PoolId pool;
    const Worker::ImportedPool memory;
    bool is_watched = true;
  };
  struct Span {
    std::shared_ptr<Pages> pages;
    ReplicaId replica;
    uint64_t first = 0;
    uint64_t count = 0;
    uint64_t hash = 0;
    std::shared_ptr<ImportedMapping> imported = {};  // where it lies, unless in our worker's memory
  };
  struct Handle {
    LeaseId lease;
    OperationNumber operation = 0;
    std::vector<Span> spans;
    bool was_released = false;
  };
  struct Expected {  // an item of a request, in the order of the answer
    size_t name_space = 0;
    uint64_t hash = 0;
    uint64_t count = 0;
    uint32_t position = 0;
  };
  struct Operation {
    enum class Kind : uint8_t { kStore, kFinish, kLoad };
    Kind kind = Kind::kStore;
    bool is_pending = true;    // no final answer yet
    bool is_poisoned = false;  // its answer is not to be used
    std::string answer;        // the final one
    v1::BeginStoreRequest begin;
    v1::FinishStoreRequest finish;
    v1::LoadRequest load;
    std::vector<Expected> expected;
  };

  bool is_joined() const { return running_ && joined_; }
  v1::ClientCaller caller();
  void open_namespaces();
  bool has_namespace(size_t index) const { return namespace_ids_[index] != 0; }
  OperationNumber next_operation(Operation operation);
  void send(OperationNumber number);
  // Whether an answer still concerns this session.
  std::function<bool()> still_here() const;
  void go_on_with(OperationNumber number);
  void write_some(Item& item);
  void finish_store(size_t at);
  void begin_answered(OperationNumber number, const v1::BeginStoreResponse& response);
  void finish_answered(OperationNumber number, const v1::FinishStoreResponse& response);
  void load_answered(OperationNumber number, const v1::LoadResponse& response);
  bool is_first_answer(Operation& operation, const std::string& answer);
  void call_failed(const Error& error);
  void operation_failed(OperationNumber number, const Error& error);
  void end_item(Item& item);
  void end_handle(Handle& handle);
  void read_all(const Handle& handle, bool is_protected);
  void end_lingering(LeaseId lease);
  void abort_items(Store& store);
  void release_handle(size_t at);
  void stop_writing(OperationNumber operation);
  void stop_reading(OperationNumber operation, LeaseId lease);
  void give_back(LeaseId lease);
  std::vector<std::string> imported_lives() const;
  void unmap();
  void drop_everything();  // spans are not touched any more
  void lose_session();     // and the session is given up, life locks with it
  void let_go_of(std::vector<std::string> names);
  Chunk random_chunk(size_t name_space);

  Hub& hub_;
  Worker& worker_;
  const std::string engine_id_;
  Scheduling scheduling_;
  bool running_ = false;
  uint64_t run_ = 0;

  // Attachment
  bool joined_ = false;
  worker::JoinId join_;  // the stream that is open or being opened
  ProcessKey join_through_ = 0;
  SessionId session_;
  uint64_t sessions_ = 0;  // raised whenever the session is given up
  std::string token_;
  uint64_t worker_incarnation_ = 0;
  ProcessKey through_ = 0;  // the worker process whose memory is mapped
  std::map<PoolId, std::shared_ptr<Pages>> mappings_;
  std::map<PoolId, std::shared_ptr<ImportedMapping>> imports_;
  std::vector<std::string> lives_;
  std::vector<std::vector<std::string>> forks_;
  std::array<uint64_t, kNamespaceCount> namespace_ids_{};

  // Work
  OperationNumber last_operation_ = 0;
  OperationNumber low_water_ = 0;
  std::map<OperationNumber, Operation> operations_;
  std::vector<Store> stores_;
  std::vector<Handle> handles_;
  std::vector<LeaseId> released_;  // lately, to release again
  std::vector<Handle> lingering_;  // read on after an operator's fence
  bool is_fenced_ = false;         // this session, and it has not heard of it
  bool has_left_ = false;
};

}  // namespace berth::sim
