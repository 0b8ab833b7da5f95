// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels with which the tests of the HIP front try launches.
#include "device.h"

KERNEL void fill(uint32_t* to, uint32_t value, uint32_t n) {
  for (uint32_t i = global_x(); i < n; i += grid_size(0) * block_size(0)) to[i] = value;
}

// Takes a while: `rounds` dependent steps, the result depends on all of them.
KERNEL void slow(uint32_t* to, uint32_t rounds) {
  uint32_t value = to[0];
  for (uint32_t i = 0; i < rounds; ++i) value = value * 1664525U + i;
  to[0] = value;
}

KERNEL void append(uint32_t* list, uint32_t value) {
  const uint32_t at = atomic_add(list, 1U);
  list[1 + at] = value;
}

KERNEL void store(uint32_t* to, uint32_t value) { *to = value; }

KERNEL void no_arguments() {}

__attribute__((amdgpu_flat_work_group_size(1, 128))) KERNEL void at_most_128(uint32_t* to) {
  to[thread_x()] = thread_x();
}

KERNEL void big_lds(uint32_t* to) {
  SHARED static uint32_t words[10 * 1024];
  for (uint32_t i = thread_x(); i < 10 * 1024; i += block_size(0)) words[i] = i ^ to[0];
  barrier();
  to[thread_x()] = words[(thread_x() * 37) % (10 * 1024)];
}

// The launch adds LDS; the kernel says how much it sees by using all of it.
extern "C" SHARED uint32_t launch_lds[];
KERNEL void dynamic_lds_sum(uint32_t* to, uint32_t words) {
  for (uint32_t i = thread_x(); i < words; i += block_size(0)) launch_lds[i] = i;
  barrier();
  if (thread_x() == 0) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < words; ++i) sum += launch_lds[i];
    to[0] = sum;
  }
}

DEVICE uint32_t module_word = 77;
KERNEL void read_module_word(uint32_t* to) { to[0] = module_word; }

// What the launch tells a kernel beside its arguments: the implicit arguments and the dispatch packet, word by word.
KERNEL void launch_facts(uint32_t* implicit, uint32_t* packet) {
  launch_lds[thread_x()] = 0;  // without a use of it, the launch says nothing about LDS
  if (global_x() != 0 || block_y() != 0 || thread_y() != 0) return;
  const auto* words = (const uint32_t*)__builtin_amdgcn_implicitarg_ptr();
  for (uint32_t i = 0; i < 64; ++i) implicit[i] = words[i];
  const auto* dispatch = (const uint32_t*)__builtin_amdgcn_dispatch_ptr();
  for (uint32_t i = 0; i < 16; ++i) packet[i] = dispatch[i];
}

// More registers than sixteen waves find on a compute unit, in a kernel that says it takes this many.
__attribute__((amdgpu_flat_work_group_size(1, 1024))) KERNEL void many_registers(uint32_t* to) {
  asm volatile("v_mov_b32 v200, 1" ::: "v200");
  to[thread_x()] = thread_x();
}

KERNEL void endless(const uint32_t* flag) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {
  }
}

// One wave waits for the other, which waits for what nobody does.
KERNEL void deadlock(const uint32_t* flag) {
  if (thread_x() < wave_size) {
    barrier();
  } else {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {
    }
    barrier();
  }
}
