// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/arrival_counters.h"

#include <string>
#include <utility>

namespace wavejit::runtime {
namespace {

// A guess: graphs of a few thousand calls have room.
constexpr std::uint32_t reserved = 1U << 16U;
// So that no two calls share a line of memory.
constexpr std::uint32_t counters_of_line = 32;

}  // namespace

ArrivalCounters::~ArrivalCounters() {
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  for (void* block : blocks_) (void)device_.hip.hipFree(block);
}

Result<void*> ArrivalCounters::make(std::uint32_t count, hip_abi::hipStream_t stream) {
  const std::size_t bytes = std::size_t{count} * sizeof(std::uint32_t);
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  void* block = nullptr;
  hip_abi::hipError_t error = current.error();
  if (error == hip_abi::hipSuccess) error = device_.hip.hipMalloc(&block, bytes);
  if (error == hip_abi::hipSuccess) error = device_.hip.hipMemsetAsync(block, 0, bytes, stream);
  if (error != hip_abi::hipSuccess) {
    const std::string text = error_text(device_.hip, error);
    // Handled here: the host's next look at HIP's errors must not find it.
    (void)device_.hip.hipGetLastError();
    if (block != nullptr) (void)device_.hip.hipFree(block);
    return fail(error == hip_abi::hipErrorOutOfMemory ? WAVEJIT_OUT_OF_MEMORY : WAVEJIT_DEVICE_ERROR,
                "counters of " + std::to_string(bytes) + " bytes on " + device_.name + ": " + text);
  }
  const std::scoped_lock lock(mutex_);
  blocks_.push_back(block);
  return block;
}

void* ArrivalCounters::captured(std::uint32_t count) {
  const std::uint32_t taken = (count + counters_of_line - 1) / counters_of_line * counters_of_line;
  const std::scoped_lock lock(mutex_);
  if (taken > left_) {
    low_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  left_ -= taken;
  if (left_ < reserved / 2) low_.store(true, std::memory_order_relaxed);
  return std::exchange(free_, free_ + (std::size_t{taken} * sizeof(std::uint32_t)));
}

void ArrivalCounters::reserve() {
  // Graphs may be replayed on any stream: zeros must be there by then. The calling thread's own stream keeps nobody
  // waiting, unless that is what it captures.
  const hip_abi::hipStream_t stream = hip_abi::stream_per_thread();
  if (is_capturing(device_, stream) || !low_.exchange(false)) return;
  const Result<void*> block = make(reserved, stream);
  if (!block) return;  // two launches merge, too
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  if (current.error() != hip_abi::hipSuccess || device_.hip.hipStreamSynchronize(stream) != hip_abi::hipSuccess) {
    (void)device_.hip.hipGetLastError();
    return;
  }
  const std::scoped_lock lock(mutex_);
  free_ = static_cast<char*>(*block);
  left_ = reserved;
}

}  // namespace wavejit::runtime
