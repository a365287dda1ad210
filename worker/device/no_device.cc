// The device gate of a build without CUDA.
#include "worker/device/device.h"

namespace berth::device {
namespace {

auto no_cuda() {
  return refuse(Reason::kUnavailable,
                "this berth-worker was built without CUDA; configure with BERTH_CUDA=ON where the "
                "toolkit is installed");
}

}  // namespace

Result<int> count_devices() { return no_cuda(); }

Result<std::unique_ptr<Device>> open_device(int /*index*/) { return no_cuda(); }

}  // namespace berth::device
