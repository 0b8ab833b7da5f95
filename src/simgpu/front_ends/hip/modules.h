// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What hipModule_t and hipFunction_t point to.
#pragma once

#include <atomic>
#include <cstddef>
#include <expected>
#include <memory>
#include <span>

#include "hip_abi/hip_abi.h"
#include "simgpu/front_ends/hip/front.h"

namespace wavejit::simgpu::hip_front {

struct Function {
  std::shared_ptr<Module> module;  // keeps the kernel alive while work that uses it is queued
  const Kernel* kernel = nullptr;
  DeviceContext* context = nullptr;
  std::atomic<int> max_dynamic_lds_bytes = -1;  // −1: not set by the program

  const KernelInfo& info() const { return kernel->info(); }
  hip_abi::hipFunction_t handle() const {
    return reinterpret_cast<hip_abi::hipFunction_t>(const_cast<Function*>(this));
  }
};

// From whatever an image can be (bare ELF, bundle, compressed bundle) to a module on the device.
std::expected<std::shared_ptr<Module>, hip_abi::hipError_t> load_image(DeviceContext& context,
                                                                       std::span<const std::byte> image);

// Makes `function` known by its handle until forget_function.
void remember_function(const std::shared_ptr<Function>& function);
void forget_function(hip_abi::hipFunction_t handle);
// Null for a handle that was never given out or whose module was unloaded.
std::shared_ptr<Function> find_function(hip_abi::hipFunction_t handle);

// Workgroups of `block_size` threads that a compute unit holds at once, as registers limit the waves of a SIMD and LDS
// limits the workgroups. 0 when one does not fit.
int workgroups_per_compute_unit(const Function& function, int block_size, std::size_t dynamic_lds_bytes);

// Where HIP takes "a function": a host stub's address or a hipFunction_t.
std::expected<std::shared_ptr<Function>, hip_abi::hipError_t> find_any_function(const void* function);

}  // namespace wavejit::simgpu::hip_front
