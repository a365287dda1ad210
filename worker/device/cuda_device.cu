// The device gate of a build with CUDA: the runtime's calls behind device.h. The runtime is linked
// statically and loads the driver when the first call needs it, so a machine without a driver
// starts this binary and gets the driver's message from open_device.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <utility>

#include "worker/device/device.h"
#include "worker/device/host_registration.h"

namespace berth::device {
namespace {

std::string describe(cudaError_t code) {
  return std::string("CUDA: ") + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
}

// Every error is also latched for the thread; left there, the next unrelated call would report it.
tl::unexpected<Error> refuse_cuda(Reason reason, const char* what, cudaError_t code) {
  cudaGetLastError();
  return refuse(reason, std::string(what) + ": " + describe(code));
}

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
  }
  return text;
}

class CudaHostRegisterCalls : public HostRegisterCalls {
 public:
  int register_chunk(std::span<std::byte> chunk) override {
    return cudaHostRegister(chunk.data(), chunk.size(), cudaHostRegisterPortable);
  }
  int unregister_chunk(std::byte* start) override { return cudaHostUnregister(start); }
  void clear_latched_error() override { cudaGetLastError(); }
  std::string describe(int code) const override {
    return device::describe(static_cast<cudaError_t>(code));
  }
};

class CudaCompletion : public Completion {
 public:
  explicit CudaCompletion(cudaEvent_t event) : event_(event) {}
  ~CudaCompletion() override {
    cudaEventSynchronize(event_);
    cudaEventDestroy(event_);
    cudaGetLastError();
  }
  CudaCompletion(const CudaCompletion&) = delete;
  CudaCompletion& operator=(const CudaCompletion&) = delete;

  Result<bool> is_complete() override {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaSuccess) return true;
    if (code != cudaErrorNotReady) return refuse_cuda(Reason::kIoError, "device copy", code);
    cudaGetLastError();  // "not ready" is latched like an error
    return false;
  }

  Result<> wait() override {
    if (const cudaError_t code = cudaEventSynchronize(event_); code != cudaSuccess)
      return refuse_cuda(Reason::kIoError, "device copy", code);
    return {};
  }

 private:
  cudaEvent_t event_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(DeviceInfo info, cudaStream_t stream) : info_(std::move(info)), stream_(stream) {}
  ~CudaDevice() override {
    cudaSetDevice(info_.index);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }

  Result<DeviceMemory> memory() override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    cudaError_t code = cudaSetDevice(info_.index);
    if (code == cudaSuccess) code = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (code != cudaSuccess) return refuse_cuda(Reason::kUnavailable, "device memory", code);
    return DeviceMemory{.total_bytes = total_bytes, .free_bytes = free_bytes};
  }

  Result<> register_host_memory(std::span<std::byte> memory) override {
    if (auto selected = select(); !selected) return selected;
    return registrations_.add(memory);
  }

  Result<> unregister_host_memory(std::span<std::byte> memory) override {
    if (auto selected = select(); !selected) return selected;
    return registrations_.remove(memory);
  }

  uint64_t registered_bytes() const override { return registrations_.registered_bytes(); }

  Result<std::unique_ptr<Completion>> copy_to_device(DeviceAddress target,
                                                     std::span<const std::byte> source) override {
    return copy(source, target, [this](void* device, const std::byte* host, size_t size) {
      return cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, stream_);
    });
  }

  Result<std::unique_ptr<Completion>> copy_from_device(std::span<std::byte> target,
                                                       DeviceAddress source) override {
    return copy(target, source,
                [this, start = target.data(), view = std::span<const std::byte>(target)](
                    void* device, const std::byte* host, size_t size) {
                  std::byte* to = start + (host - view.data());
                  return cudaMemcpyAsync(to, device, size, cudaMemcpyDeviceToHost, stream_);
                });
  }

 private:
  // The current device belongs to the thread, and any thread may call.
  Result<> select() {
    if (const cudaError_t code = cudaSetDevice(info_.index); code != cudaSuccess)
      return refuse_cuda(Reason::kUnavailable, "selecting the device", code);
    return {};
  }

  template <class CopyPiece>
  Result<std::unique_ptr<Completion>> copy(std::span<const std::byte> host, DeviceAddress device,
                                           CopyPiece copy_piece) {
    if (auto selected = select(); !selected) return tl::unexpected(selected.error());
    cudaEvent_t event = nullptr;
    cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (code != cudaSuccess) return refuse_cuda(Reason::kIoError, "device copy", code);
    auto completion = std::make_unique<CudaCompletion>(event);

    uint64_t address = device.value;
    for (const auto piece : registrations_.pieces_of(host)) {
      code = copy_piece(reinterpret_cast<void*>(address), piece.data(), piece.size());
      if (code != cudaSuccess) break;
      address += piece.size();
    }
    if (code == cudaSuccess) code = cudaEventRecord(event, stream_);
    if (code == cudaSuccess) return completion;
    cudaStreamSynchronize(
        stream_);  // earlier pieces may still be moving; the caller takes the memory back
    return refuse_cuda(Reason::kIoError, "device copy", code);
  }

  const DeviceInfo info_;
  const cudaStream_t stream_;
  CudaHostRegisterCalls calls_;
  HostRegistrations registrations_{calls_};
};

}  // namespace

Result<int> count_devices() {
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess)
    return refuse_cuda(Reason::kUnavailable, "no CUDA device can be used", code);
  return count;
}

Result<std::unique_ptr<Device>> open_device(int index) {
  const auto count = count_devices();
  if (!count) return tl::unexpected(count.error());
  if (index < 0 || index >= *count)
    return refuse(Reason::kInvalidConfig, "device " + std::to_string(index) + ": this host has " +
                                              std::to_string(*count) +
                                              ", numbered from 0; name one of them");
  cudaDeviceProp properties{};
  cudaStream_t stream = nullptr;
  cudaError_t code = cudaSetDevice(index);
  if (code == cudaSuccess) code = cudaGetDeviceProperties(&properties, index);
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (code != cudaSuccess) return refuse_cuda(Reason::kUnavailable, "opening the device", code);
  return std::make_unique<CudaDevice>(
      DeviceInfo{.index = index, .name = properties.name, .uuid = format_uuid(properties.uuid)},
      stream);
}

}  // namespace berth::device
