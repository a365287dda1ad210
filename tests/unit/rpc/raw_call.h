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

struct RawAnswer {
  grpc::Status status;
  std::string message;  // the first one, if any
};

// Sends one message. Unary calls look the same as streams.
inline RawAnswer raw_answer(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
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
  wait();
  RawAnswer answer;
  grpc::ByteBuffer bytes;
  stream->Read(&bytes, nullptr);
  if (wait()) {
    grpc::Slice whole;
    REQUIRE(bytes.DumpToSingleSlice(&whole).ok());
    answer.message.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  stream->Finish(&answer.status, nullptr);
  wait();
  return answer;
}

// The first message of an answer that must be one.
inline std::string raw_call(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                            const std::string& request) {
  const RawAnswer answer = raw_answer(channel, path, request);
  REQUIRE(answer.status.ok());
  return answer.message;
}

}  // namespace berth::testing
