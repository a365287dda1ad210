// A GPU as the worker sees it: host memory that it can reach, copies to and from its memory, and
// how full that memory is. Without CUDA in the build, or without a driver on the machine, there is
// no Device: open_device says why, and everything else of the worker runs as usual.
//
// A Device may be used by any thread, by one at a time. It outlives its Completions, and host
// memory that it has registered must stay mapped until it is unregistered or the Device is
// destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/error.h"

namespace berth::device {

// An address in the device's own memory, as an engine hands it over. Never dereferenced on the
// host.
struct DeviceAddress {
  uint64_t value = 0;
};

struct DeviceInfo {
  int index = 0;
  std::string name;
  std::string uuid;  // "GPU-" and 32 hexadecimal digits in five groups, as nvidia-smi prints it
};

struct DeviceMemory {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

// One copy in flight. Both sides of the copy belong to it until is_complete() or wait() has said
// so; the destructor waits too, so that memory is never reused under a copy that was forgotten.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual Result<bool> is_complete() = 0;
  virtual Result<> wait() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual Result<DeviceMemory> memory() = 0;

  // Pins `memory` and makes it reachable for copies. All of it or, after an Error, none of it.
  virtual Result<> register_host_memory(std::span<std::byte> memory) = 0;
  // Takes exactly a range that was registered.
  virtual Result<> unregister_host_memory(std::span<std::byte> memory) = 0;
  // What is really pinned; usage views print this and never what was asked for.
  virtual uint64_t registered_bytes() const = 0;

  // Start a copy and return at once. Copies of one Device complete in the order in which they
  // started.
  virtual Result<std::unique_ptr<Completion>> copy_to_device(DeviceAddress target,
                                                             std::span<const std::byte> source) = 0;
  virtual Result<std::unique_ptr<Completion>> copy_from_device(std::span<std::byte> target,
                                                               DeviceAddress source) = 0;
};

// Errors of both: kUnavailable with the driver's own message, or "built without CUDA".
Result<int> count_devices();
// Also kInvalidConfig where the host has no device of that index.
Result<std::unique_ptr<Device>> open_device(int index);

}  // namespace berth::device
