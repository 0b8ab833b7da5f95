// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory is shared by workgroups that run at the same time. A kernel that races there is a finding of the
// simulator's, never undefined behaviour of the program that simulates it: every access is atomic for the host.
#pragma once

#include <cstdint>

namespace wavejit::simgpu {

// One access, as on the device, to a place that the caller knows to be aligned. Instructions marked with a scope order
// what surrounds them, so relaxed is enough here. Always inlined: lane_kernels.cpp is compiled for wider hosts than
// other files.
template <typename T>
[[gnu::always_inline]] inline T load_aligned(const std::uint8_t* from) {
  return __atomic_load_n(reinterpret_cast<const T*>(from), __ATOMIC_RELAXED);
}

template <typename T>
[[gnu::always_inline]] inline void store_aligned(std::uint8_t* to, T value) {
  __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELAXED);
}

// Aligned values move as one access, others byte by byte.
template <typename T>
inline T load_device(const std::uint8_t* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(T) == 0) return load_aligned<T>(from);
  T value = 0;
  for (unsigned i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(T{__atomic_load_n(from + i, __ATOMIC_RELAXED)} << (8 * i));
  }
  return value;
}

template <typename T>
inline void store_device(std::uint8_t* to, T value) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(T) == 0) {
    store_aligned(to, value);
    return;
  }
  for (unsigned i = 0; i < sizeof(T); ++i) {
    __atomic_store_n(to + i, static_cast<std::uint8_t>(value >> (8 * i)), __ATOMIC_RELAXED);
  }
}

// Sixteen bytes at a multiple of sixteen, as one access: what an aligned vector move is on hosts with AVX (Intel's
// manual, volume 3A, 9.1.1; AMD's says the same). Written out, so that no compiler takes it apart.
using FourDwords = std::uint32_t __attribute__((vector_size(16), may_alias));

[[gnu::always_inline]] inline FourDwords load_four_aligned(const std::uint8_t* from) {
  FourDwords words;
#ifdef __AVX__
  asm volatile("vmovdqa %1, %0" : "=x"(words) : "m"(*reinterpret_cast<const FourDwords*>(from)));
#else
  asm volatile("movdqa %1, %0" : "=x"(words) : "m"(*reinterpret_cast<const FourDwords*>(from)));
#endif
  return words;
}

[[gnu::always_inline]] inline void store_four_aligned(std::uint8_t* to, FourDwords words) {
#ifdef __AVX__
  asm volatile("vmovdqa %1, %0" : "=m"(*reinterpret_cast<FourDwords*>(to)) : "x"(words));
#else
  asm volatile("movdqa %1, %0" : "=m"(*reinterpret_cast<FourDwords*>(to)) : "x"(words));
#endif
}

// Dwords of one lane, which lie one behind the other. Eight bytes at a multiple of eight move as one access: LLVM's
// AMDGPU memory model writes an atomic load or store of 64 bits as a plain dwordx2. So do sixteen at a multiple of
// sixteen: AMD's rocPRIM publishes a value of 15 bytes with its state by dwordx4 (intrinsics/atomic.hpp).
template <unsigned words>
inline void load_words(std::uint32_t* to, const std::uint8_t* from) {
  const auto place = reinterpret_cast<std::uintptr_t>(from);
  unsigned i = 0;
  if (place % sizeof(FourDwords) == 0) {
    for (; i + 4 <= words; i += 4) {
      const FourDwords four = load_four_aligned(from + (4 * i));
      __builtin_memcpy(to + i, &four, sizeof(four));
    }
  }
  if (place % sizeof(std::uint64_t) == 0) {
    for (; i + 2 <= words; i += 2) {
      const auto both = load_aligned<std::uint64_t>(from + (4 * i));
      to[i] = static_cast<std::uint32_t>(both);
      to[i + 1] = static_cast<std::uint32_t>(both >> 32);
    }
  }
  for (; i < words; ++i) to[i] = load_device<std::uint32_t>(from + (4 * i));
}

template <unsigned words>
inline void store_words(std::uint8_t* to, const std::uint32_t* from) {
  const auto place = reinterpret_cast<std::uintptr_t>(to);
  unsigned i = 0;
  if (place % sizeof(FourDwords) == 0) {
    for (; i + 4 <= words; i += 4) {
      FourDwords four;
      __builtin_memcpy(&four, from + i, sizeof(four));
      store_four_aligned(to + (4 * i), four);
    }
  }
  if (place % sizeof(std::uint64_t) == 0) {
    for (; i + 2 <= words; i += 2) store_aligned(to + (4 * i), from[i] | (std::uint64_t{from[i + 1]} << 32));
  }
  for (; i < words; ++i) store_device(to + (4 * i), from[i]);
}

// One access's bytes to somewhere of the reader's own: `bytes` is 1, 2 or a multiple of 4.
template <unsigned bytes>
inline void copy_from_device(std::uint8_t* to, const std::uint8_t* from) {
  static_assert(bytes == 1 || bytes == 2 || bytes % 4 == 0);
  if constexpr (bytes == 1) {
    *to = load_device<std::uint8_t>(from);
  } else if constexpr (bytes == 2) {
    const auto value = load_device<std::uint16_t>(from);
    __builtin_memcpy(to, &value, 2);
  } else {
    std::uint32_t words[bytes / 4];
    load_words<bytes / 4>(words, from);
    __builtin_memcpy(to, words, bytes);
  }
}

}  // namespace wavejit::simgpu
