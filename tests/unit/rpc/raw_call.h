// A call by its path, in bytes: for services whose messages we do not compile (health,
// reflection).
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "common/rpc_channel.h"

namespace berth::testing {

// Sends one message and returns the first that comes back. Unary calls look the same as streams.
inline std::string raw_call(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                            const std::string& request) {
  grpc::ClientContext context;
  set_deadline(context, seconds(60));
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  auto stream = stub.PrepareCall(&context, path, &queue);
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    return ok;
  };
  stream->StartCall(nullptr);
  REQUIRE(wait());
  grpc::Slice slice(request);
  stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  REQUIRE(wait());
  grpc::ByteBuffer answer;
  stream->Read(&answer, nullptr);
  REQUIRE(wait());
  grpc::Status status;
  stream->Finish(&status, nullptr);
  wait();
  REQUIRE(status.ok());
  grpc::Slice whole;
  REQUIRE(answer.DumpToSingleSlice(&whole).ok());
  return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
}

}  // namespace berth::testing
