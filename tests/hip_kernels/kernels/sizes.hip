// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of awkward sizes: what a compiler loads where less was asked for. HIP hands out whole pages, and LLVM relies
// on it: three dwords at an address that is a multiple of 16 come by s_load_dwordx4.
#include "device.h"

// All lanes read the same element, and each its own.
#define VECTOR(name, type, count)                                               \
  using name = type __attribute__((ext_vector_type(count)));                    \
  KERNEL void uniform_##name(const name* in, uint32_t* out) {                   \
    const name value = *in;                                                     \
    uint32_t sum = 0;                                                           \
    for (int i = 0; i < count; ++i) sum += static_cast<uint32_t>(value[i]) + i; \
    out[thread_x()] = sum;                                                      \
  }                                                                             \
  KERNEL void lanes_##name(const name* in, uint32_t* out) {                     \
    const name value = in[thread_x()];                                          \
    uint32_t sum = 0;                                                           \
    for (int i = 0; i < count; ++i) sum += static_cast<uint32_t>(value[i]) + i; \
    out[thread_x()] = sum;                                                      \
  }

VECTOR(bytes1, uint8_t, 1)
VECTOR(bytes2, uint8_t, 2)
VECTOR(bytes3, uint8_t, 3)
VECTOR(bytes4, uint8_t, 4)
VECTOR(bytes5, uint8_t, 5)
VECTOR(bytes6, uint8_t, 6)
VECTOR(bytes7, uint8_t, 7)
VECTOR(bytes8, uint8_t, 8)
VECTOR(bytes9, uint8_t, 9)
VECTOR(bytes10, uint8_t, 10)
VECTOR(bytes11, uint8_t, 11)
VECTOR(bytes12, uint8_t, 12)
VECTOR(bytes13, uint8_t, 13)
VECTOR(bytes14, uint8_t, 14)
VECTOR(bytes15, uint8_t, 15)
VECTOR(bytes16, uint8_t, 16)
VECTOR(bytes17, uint8_t, 17)
VECTOR(halves3, uint16_t, 3)
VECTOR(dwords3, uint32_t, 3)
VECTOR(dwords5, uint32_t, 5)
VECTOR(dwords6, uint32_t, 6)
VECTOR(dwords7, uint32_t, 7)
VECTOR(dwords9, uint32_t, 9)
VECTOR(longs3, uint64_t, 3)
