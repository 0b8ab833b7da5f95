// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the exported functions share: the context of each device, the handles that were given out, the thread's device.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hip_abi/hip_abi.h"
#include "simgpu/front_ends/hip/errors.h"
#include "simgpu/front_ends/hip/stream.h"
#include "simgpu/machine/device/device.h"

namespace wavejit::simgpu::hip_front {

// The primary context of a device; the only kind there is.
class DeviceContext {
 public:
  explicit DeviceContext(Device& device);

  Device& device() const { return device_; }
  int ordinal() const { return device_.ordinal(); }

  // The first error of a kernel on this device. It stays, as on a GPU whose context is lost, until hipDeviceReset.
  hip_abi::hipError_t error() const { return error_.load(std::memory_order_acquire); }
  void fail(hip_abi::hipError_t error);
  void clear_error() { error_.store(hip_abi::hipSuccess, std::memory_order_release); }

  const std::shared_ptr<Stream>& null_stream() const { return null_stream_; }
  std::shared_ptr<Stream> create_stream(unsigned flags, int priority);
  void remove_stream(const std::shared_ptr<Stream>& stream);
  std::vector<std::shared_ptr<Stream>> streams() const;

  // Puts work into a stream of this device, behind what HIP's rules for the null stream ask for.
  Stream::Ticket submit(const std::shared_ptr<Stream>& stream, std::function<void()> work,
                        Stream::AfterError after_error = Stream::AfterError::skip,
                        std::vector<Stream::Dependency> dependencies = {});
  // Waits for all streams of the device.
  void synchronize();

  std::atomic<unsigned> flags = 0;

 private:
  Device& device_;
  std::shared_ptr<Stream> null_stream_;
  std::atomic<hip_abi::hipError_t> error_ = hip_abi::hipSuccess;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Stream>> streams_;  // without the null stream
};

// Null when there is no such device.
DeviceContext* find_context(int ordinal);
// The one of the calling thread's current device; null when there is no device at all.
DeviceContext* current_context();
int current_ordinal();
// False when there is no such device.
bool set_current_ordinal(int ordinal);

// The stream that a handle means for the calling thread, null for one that was destroyed or never existed.
std::shared_ptr<Stream> find_stream(hip_abi::hipStream_t handle);
// The calling thread's own default stream on its current device; null when there is no device.
std::shared_ptr<Stream> per_thread_stream();
// The handle that the _spt functions mean when they are given the default stream.
hip_abi::hipStream_t per_thread_default(hip_abi::hipStream_t handle);
hip_abi::hipStream_t add_stream_handle(const std::shared_ptr<Stream>& stream);
void remove_stream_handle(hip_abi::hipStream_t handle);

// Registers, once, that the workers of all streams end before the process's statics are destroyed.
void close_streams_at_exit();

}  // namespace wavejit::simgpu::hip_front
