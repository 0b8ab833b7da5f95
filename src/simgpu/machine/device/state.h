// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What device.h hides from the HIP front.
#pragma once

#include <memory>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/machine/loader/loaded_code.h"

namespace wavejit::simgpu {

class Disassembler;

struct KernelCode {
  KernelDescriptor descriptor;
  LoadedCode* code = nullptr;
  std::uint64_t entry = 0;
};

struct Device::State {
  explicit State(const targets::Target& target) : registry(target) {}
  Registry registry;
  Disassembler* disassembler = nullptr;
};

}  // namespace wavejit::simgpu
