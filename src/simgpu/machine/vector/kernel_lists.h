// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tables that kernels_*.cpp export, once per host instruction set (namespaces x86_64_v2, v3 and v4).
#pragma once

#include "simgpu/machine/vector/operation.h"
#include "simgpu/process/host_set.h"

#define WAVEJIT_DECLARE_KERNEL_LISTS(set)                                                                     \
  namespace set {                                                                                             \
  [[gnu::weak]] OperationList float32_operations();                                                           \
  [[gnu::weak]] OperationList float64_operations();                                                           \
  [[gnu::weak]] OperationList float16_operations();                                                           \
  [[gnu::weak]] OperationList integer_operations();                                                           \
  [[gnu::weak]] OperationList packed_operations();                                                            \
  [[gnu::weak]] OperationList convert_operations();                                                           \
  [[gnu::weak]] OperationList small_float_operations();                                                       \
  [[gnu::weak]] OperationList compare_operations();                                                           \
  [[gnu::weak]] OperationList rdna4_operations();                                                             \
  [[gnu::weak]] void blend_lanes(std::uint32_t* destination, const std::uint32_t* source, std::uint64_t mask, \
                                 unsigned dwords);                                                            \
  }

namespace wavejit::simgpu::vector {
WAVEJIT_FOR_EACH_HOST_SET(WAVEJIT_DECLARE_KERNEL_LISTS);
}  // namespace wavejit::simgpu::vector
