#include "tests/bench/rpc/ask_admin.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/bench/rpc/event_loop.h"

namespace berth::bench {
namespace {

constexpr double kEvictedWithin = 120;  // seconds
constexpr auto kLookEvery = std::chrono::milliseconds(2);

}  // namespace

Result<> evict_namespace(v1::Admin::Stub& stub, const std::string& name) {
  v1::EvictNamespaceRequest evict;
  evict.set_name(name);
  const uint64_t start = now_nanos();
  if (const auto begun = ask_admin(stub, &v1::Admin::Stub::EvictNamespace, evict); !begun)
    return tl::unexpected(begun.error());
  for (;;) {
    const auto usage = ask_admin(stub, &v1::Admin::Stub::GetUsage, v1::GetUsageRequest());
    if (!usage) return tl::unexpected(usage.error());
    const auto& rows = usage->namespaces();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const v1::NamespaceRow& one) {
      return one.spec().name() == name;
    });
    if (row == rows.end() || row->replicas() == 0) return {};
    if (static_cast<double>(now_nanos() - start) / 1e9 > kEvictedWithin)
      return refuse(Reason::kDeadlineExceeded, "what was stored does not leave");
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace berth::bench
