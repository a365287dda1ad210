// A worker that a test speaks by hand over the Directory's own calls, so that it can say what the
// real one never would. It attaches with an empty ledger and one HOST pool, and has one client.
// Each call answers with the response or with the Error that came back.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/v1/directory.grpc.pb.h"
#include "common/error.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"

namespace berth::testing {

class RawWorker {
 public:
  static constexpr Duration kCallWithin = seconds(10);
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kPages = 64;

  // Opens the session, re-attaches, opens the Link and registers the pool.
  RawWorker(const std::string& address, const std::string& name);
  ~RawWorker();

  v1::Caller caller() const;
  uint64_t client() const { return client_; }
  uint64_t pool() const { return pool_; }
  uint64_t name_space() const { return namespace_; }

  static v1::NamespaceSpec namespace_spec();
  // `bytes` times the letter: a digest that a reader of a failure recognises.
  static std::string digest(char letter, size_t bytes = 16) { return std::string(bytes, letter); }

  template <class Request, class Response>
  using Method = grpc::Status (v1::Directory::Stub::*)(grpc::ClientContext*, const Request&,
                                                       Response*);
  // Fills in the caller, and the client session where the request has one.
  template <class Request, class Response>
  Result<Response> call(Method<Request, Response> method, Request request) {
    *request.mutable_caller() = caller();
    if constexpr (requires { request.set_client_session(client_); })
      if (request.client_session() == 0) request.set_client_session(client_);
    return plain_call(method, request);
  }
  template <class Request, class Response>
  Result<Response> plain_call(Method<Request, Response> method, const Request& request) {
    grpc::ClientContext context;
    set_deadline(context, kCallWithin);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return tl::unexpected(error_from_status(status));
    return response;
  }

  // The requests that tests vary, filled in so that they would be good.
  v1::ReserveRequest reserve_request(uint64_t operation, const std::string& digests) const;
  v1::CommitRequest commit_request(uint64_t operation, const std::vector<uint64_t>& replicas,
                                   uint64_t first_offset) const;
  v1::AcquireRequest acquire_request(uint64_t operation, const std::string& digests) const;

  Result<v1::ReserveResponse> reserve(const v1::ReserveRequest& request);
  Result<v1::CommitResponse> commit(const v1::CommitRequest& request);
  Result<v1::AcquireResponse> acquire(const v1::AcquireRequest& request);
  Result<v1::AbortResponse> abort(const std::vector<uint64_t>& replicas);
  Result<v1::ReleaseResponse> release(const std::vector<uint64_t>& leases);
  uint32_t probe(const std::string& digests);

 private:
  void attach();
  void open_link();

  std::unique_ptr<v1::Directory::Stub> stub_;
  std::string name_;
  uint64_t session_ = 0;
  std::string token_;
  uint32_t incarnation_ = 0;
  std::unique_ptr<grpc::ClientContext> link_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LinkRequest, v1::LinkResponse>> link_;
  uint64_t pool_ = 0;
  uint64_t client_ = 0;
  uint64_t namespace_ = 0;
};

}  // namespace berth::testing
