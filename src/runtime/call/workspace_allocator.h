// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory for workspaces: from the caller's functions if the engine's options have them, else from HIP.
#pragma once

#include <cstddef>

#include "runtime/libraries/hip_library.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

inline constexpr std::size_t workspace_alignment = 256;

// Safe from any thread, if the caller's functions are.
class WorkspaceAllocator {
 public:
  WorkspaceAllocator(const HipDevice& device, const Hooks& hooks) : device_(device), hooks_(hooks) {}

  // WAVEJIT_OUT_OF_MEMORY when there is none. Breaks no capture.
  Result<void*> allocate(std::size_t bytes, hip_abi::hipStream_t stream) const;
  // `bytes` and `stream` as they were given. Null is allowed.
  void release(void* memory, std::size_t bytes, hip_abi::hipStream_t stream) const noexcept;

 private:
  const HipDevice& device_;
  Hooks hooks_;
};

}  // namespace wavejit::runtime
