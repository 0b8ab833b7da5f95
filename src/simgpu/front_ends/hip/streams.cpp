// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdint>
#include <utility>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/front.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

namespace {

constexpr int greatest_priority = -1;
constexpr int least_priority = 1;

hipError_t create(hipStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~hipStreamNonBlocking) != 0) return hipErrorInvalidValue;
  DeviceContext* context = current_context();
  if (context == nullptr) return hipErrorNoDevice;
  const int clamped = std::min(std::max(priority, greatest_priority), least_priority);
  *stream = add_stream_handle(context->create_stream(flags, clamped));
  return hipSuccess;
}

// What HIP answers for a handle that is none.
hipError_t no_stream() { return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed; }

hipError_t synchronize(hipStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return no_stream();
  if (const hipError_t refused = refuse_stream_wait(stream); refused != hipSuccess) return refused;
  if (stream == stream->context().null_stream()) {
    // Its work comes after that of all blocking streams, also when nothing was put into it since.
    for (const auto& other : stream->context().streams()) {
      if (other->blocking()) other->wait_all();
    }
  } else {
    stream->wait_all();
  }
  return stream->context().error();
}

hipError_t query(hipStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return no_stream();
  if (const hipError_t refused = refuse_stream_wait(stream); refused != hipSuccess) return refused;
  const auto busy = [](const Stream& one) { return !one.done(one.last_ticket()); };
  if (busy(*stream)) return hipErrorNotReady;
  if (stream == stream->context().null_stream()) {
    for (const auto& other : stream->context().streams()) {
      if (other->blocking() && busy(*other)) return hipErrorNotReady;
    }
  }
  return stream->context().error();
}

template <typename Value>
hipError_t write_value(hipStream_t handle, void* pointer, Value value, unsigned flags) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return no_stream();
  if (pointer == nullptr || flags != 0) return hipErrorInvalidValue;
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (address % sizeof(Value) != 0 || !allocation.holds(address, sizeof(Value))) return hipErrorInvalidValue;
  if (const hipError_t refused = refuse_in_capture(stream); refused != hipSuccess) return refused;
  stream->context().submit(
      stream, [pointer, value] { __atomic_store_n(static_cast<Value*>(pointer), value, __ATOMIC_RELEASE); });
  return hipSuccess;
}

}  // namespace

hipError_t hipStreamCreate(hipStream_t* stream) { return finish(create(stream, hipStreamDefault, 0)); }
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) { return finish(create(stream, flags, 0)); }
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  return finish(create(stream, flags, priority));
}

hipError_t hipStreamDestroy(hipStream_t handle) {
  if (handle == nullptr || handle == stream_legacy() || handle == stream_per_thread()) {
    return finish(hipErrorInvalidHandle);
  }
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  abandon_capture(stream);
  remove_stream_handle(handle);
  stream->context().remove_stream(stream);
  return finish(hipSuccess);
}

hipError_t hipStreamSynchronize(hipStream_t stream) { return finish(synchronize(stream)); }
hipError_t hipStreamSynchronize_spt(hipStream_t stream) { return finish(synchronize(per_thread_default(stream))); }
hipError_t hipStreamQuery(hipStream_t stream) { return finish(query(stream)); }
hipError_t hipStreamQuery_spt(hipStream_t stream) { return finish(query(per_thread_default(stream))); }

hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t* device) {
  if (device == nullptr) return finish(hipErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  *device = stream->context().ordinal();
  return finish(hipSuccess);
}

int hipGetStreamDeviceId(hipStream_t handle) {
  const auto stream = find_stream(handle);
  return stream == nullptr ? hip_invalid_device_id : stream->context().ordinal();
}

hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  if (flags == nullptr) return finish(hipErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  *flags = stream->flags();
  return finish(hipSuccess);
}

hipError_t hipStreamGetPriority(hipStream_t handle, int* priority) {
  if (priority == nullptr) return finish(hipErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  *priority = stream->priority();
  return finish(hipSuccess);
}

hipError_t hipStreamGetId(hipStream_t handle, unsigned long long* id) {
  if (id == nullptr) return finish(hipErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  *id = stream->id();
  return finish(hipSuccess);
}

hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void* user_data, unsigned flags) {
  if (callback == nullptr || flags != 0) return finish(hipErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  if (const hipError_t refused = refuse_in_capture(stream); refused != hipSuccess) return finish(refused);
  DeviceContext& context = stream->context();
  context.submit(stream, [=, &context] { callback(handle, context.error(), user_data); }, Stream::AfterError::run);
  return finish(hipSuccess);
}

hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* user_data) {
  if (function == nullptr) return finish(hipErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return finish(no_stream());
  const auto work = [=] { function(user_data); };
  if (const auto captured = capture_work(stream, {hipGraphNodeTypeHost, nullptr, work})) return finish(*captured);
  stream->context().submit(stream, work);
  return finish(hipSuccess);
}

hipError_t hipStreamWriteValue32(hipStream_t stream, void* pointer, std::uint32_t value, unsigned flags) {
  return finish(write_value(stream, pointer, value, flags));
}
hipError_t hipStreamWriteValue64(hipStream_t stream, void* pointer, std::uint64_t value, unsigned flags) {
  return finish(write_value(stream, pointer, value, flags));
}

}  // namespace wavejit::hip_abi
