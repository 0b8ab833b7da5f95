// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/workspace_allocator.h"

#include <cstdint>
#include <string>

namespace wavejit::runtime {
namespace {

Failure no_memory(std::size_t bytes, const std::string& why) {
  return {WAVEJIT_OUT_OF_MEMORY, "a workspace of " + std::to_string(bytes) + " bytes: " + why};
}

}  // namespace

Result<void*> WorkspaceAllocator::allocate(std::size_t bytes, hip_abi::hipStream_t stream) const {
  if (hooks_.allocate != nullptr) {
    void* memory = nullptr;
    try {
      memory = hooks_.allocate(hooks_.allocator_context, bytes, stream);
    } catch (...) {
      return std::unexpected(no_memory(bytes, "options.allocate threw an exception"));
    }
    if (memory == nullptr) return std::unexpected(no_memory(bytes, "options.allocate gave none"));
    if (reinterpret_cast<std::uintptr_t>(memory) % workspace_alignment == 0) return memory;
    release(memory, bytes, stream);
    return fail(WAVEJIT_INVALID_ARGUMENT, "options.allocate gave memory that is not aligned; accepted: a multiple of " +
                                              std::to_string(workspace_alignment));
  }
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  void* memory = nullptr;
  hip_abi::hipError_t error = current.error();
  if (error == hip_abi::hipSuccess) error = device_.hip.hipMalloc(&memory, bytes);
  if (error == hip_abi::hipSuccess) return memory;
  if (error == hip_abi::hipErrorOutOfMemory) return std::unexpected(no_memory(bytes, error_text(device_.hip, error)));
  return fail(WAVEJIT_DEVICE_ERROR, "a workspace of " + std::to_string(bytes) + " bytes on " + device_.name + ": " +
                                        error_text(device_.hip, error));
}

void WorkspaceAllocator::release(void* memory, std::size_t bytes, hip_abi::hipStream_t stream) const noexcept {
  if (memory == nullptr) return;
  if (hooks_.allocate != nullptr) {
    try {
      hooks_.release(hooks_.allocator_context, memory, bytes, stream);
    } catch (...) {  // the memory is the caller's own again, whatever became of it
      return;
    }
    return;
  }
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  (void)device_.hip.hipFree(memory);
}

}  // namespace wavejit::runtime
