#include "tests/bench/rpc/plan.h"

namespace berth::bench {

std::string name_of(Workload workload) {
  switch (workload) {
    case Workload::kProbe:
      return "probe";
    case Workload::kAcquire:
      return "acquire+release";
    case Workload::kStore:
      return "reserve+commit";
    case Workload::kTrace:
      return "trace";
  }
  return "";
}

std::string name_of(Api api) { return api == Api::kUnary ? "unary" : "link"; }

std::string name_of(Transport transport) { return transport == Transport::kTcp ? "tcp" : "unix"; }

}  // namespace berth::bench
