// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that are wrong, each in one way. Compiled without optimisation every pointer is a flat one, that to LDS too;
// a pointer handed to a function is one at every level. The line of each fault ends in "fault: <check>"; the test looks
// for it.
#include "device.h"

#define GLOBAL __attribute__((global))

// The smallest code that nobody inlines.
NOINLINE float load(const float* from, uint32_t index) {
  return from[index];  // fault: races uninitialised
}
NOINLINE void store(float* to, uint32_t index, float value) { to[index] = value; }

namespace faults {

// Two waves swap values, and nobody waits for the other.
template <typename T>
GLOBAL void races(T* out) {
  SHARED static T shared[128];
  store(shared, thread_x(), 0);
  barrier();
  store(shared, thread_x(), static_cast<T>(thread_x()));
  out[thread_x()] = load(shared, thread_x() ^ 64);
}

template <typename T>
GLOBAL void uninitialised(T* out) {
  SHARED static T shared[128];
  if (thread_x() < 32) store(shared, thread_x(), 1);
  barrier();
  out[thread_x()] = load(shared, thread_x());  // fault: uninitialised
}

// Half of a dword is written.
GLOBAL void uninitialised_bytes(uint32_t* out) {
  SHARED static uint16_t shared[256];
  uint16_t* volatile place = shared;
  place[2 * thread_x()] = 1;
  barrier();
  const volatile uint32_t* words = reinterpret_cast<const volatile uint32_t*>(place);
  out[thread_x()] = words[thread_x()];  // fault: uninitialised_bytes
}

// The memory of `in` is fresh.
GLOBAL void uninitialised_memory(const float* in, float* out) {
  out[thread_x()] = in[thread_x()];  // fault: uninitialised_memory
}

// The second of two blocks to arrive reads what the first one has not released, or acquires nothing.
template <bool releases>
GLOBAL void unordered(uint32_t* parts, uint32_t* arrived, uint32_t* out) {
  parts[global_x()] = thread_x();
  if (releases) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  barrier();
  const uint32_t ticket = __hip_atomic_fetch_add(arrived, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  if (!releases) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  if (ticket < block_size(0)) return;
  out[thread_x()] = parts[(1 - block_x()) * block_size(0) + thread_x()];  // fault: unordered
}

GLOBAL void waits(float* out) {
  SHARED static float shared[128];
  float* volatile generic = shared;
  const float* place = generic + thread_x();
  store(shared, thread_x(), 1);
  barrier();
  float value = 0;
  float copy = 0;
  asm volatile("flat_load_dword %0, %2\n v_mov_b32 %1, %0\n s_waitcnt vmcnt(0) lgkmcnt(0)"  // fault: waits
               : "=&v"(value), "=&v"(copy)
               : "v"(place));
  out[thread_x()] = value + copy;
}

GLOBAL void hazards(uint32_t* out) {
  uint32_t value = thread_x() & 0;
  uint32_t first = 0;
  asm volatile("v_add_u32 %0, 1, %0\n v_readlane_b32 %1, %0, 3" : "+v"(value), "=s"(first));  // fault: hazards
  out[thread_x()] = first;
}

using float4 = float __attribute__((ext_vector_type(4)));
using half4 = half __attribute__((ext_vector_type(4)));
GLOBAL void exec(float* out) {
  float4 sum = {0, 0, 0, 0};
  half4 ones = {1, 1, 1, 1};
  asm volatile("" : "+v"(ones), "+v"(sum));  // all lanes have them
  if (thread_x() < 32) {
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(ones, ones, sum, 0, 0, 0);  // fault: exec
  }
  out[thread_x()] = sum[0];
}

GLOBAL void barriers(float* out) {
  if (thread_x() >= 64) return;
  __builtin_amdgcn_s_barrier();  // fault: barriers
  out[thread_x()] = 1;
}

GLOBAL void uniform(uint32_t* out) {
  out[thread_x()] =
      static_cast<uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(thread_x() * 3)));  // fault: uniform
}

// `distance` beyond the end, in elements: one is a slip, many land where a neighbour could be.
GLOBAL void writes_behind(float* out, uint32_t distance) {
  out[thread_x() + distance] = 1;  // fault: writes_behind
}
GLOBAL void reads_behind(const float* in, float* out, uint32_t distance) {
  out[thread_x()] = in[thread_x() + distance];  // fault: reads_behind
}

template GLOBAL void races<float>(float*);
template GLOBAL void unordered<true>(uint32_t*, uint32_t*, uint32_t*);
template GLOBAL void unordered<false>(uint32_t*, uint32_t*, uint32_t*);
template GLOBAL void uninitialised<float>(float*);

}  // namespace faults
