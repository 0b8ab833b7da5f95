// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The few words of HIP that the kernels of this folder use, declared here so that they compile without HIP's headers
// and in a tenth of the time. The device libraries (ocml, ockl) come from the installed bitcode.
#pragma once

#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global))
#define GLOBAL_MEMORY __attribute__((address_space(1)))
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((constant))
#define NOINLINE __attribute__((device, noinline))

using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using half = _Float16;
using bf16 = __bf16;

extern "C" DEVICE __SIZE_TYPE__ __ockl_get_num_groups(unsigned);
extern "C" DEVICE __SIZE_TYPE__ __ockl_get_local_size(unsigned);

inline DEVICE uint32_t thread_x() { return __builtin_amdgcn_workitem_id_x(); }
inline DEVICE uint32_t thread_y() { return __builtin_amdgcn_workitem_id_y(); }
inline DEVICE uint32_t thread_z() { return __builtin_amdgcn_workitem_id_z(); }
inline DEVICE uint32_t block_x() { return __builtin_amdgcn_workgroup_id_x(); }
inline DEVICE uint32_t block_y() { return __builtin_amdgcn_workgroup_id_y(); }
inline DEVICE uint32_t block_z() { return __builtin_amdgcn_workgroup_id_z(); }
inline DEVICE uint32_t block_size(unsigned dim) { return static_cast<uint32_t>(__ockl_get_local_size(dim)); }
inline DEVICE uint32_t grid_size(unsigned dim) { return static_cast<uint32_t>(__ockl_get_num_groups(dim)); }
inline DEVICE uint32_t global_x() { return block_x() * block_size(0) + thread_x(); }

inline DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#if defined(__GFX12__) && !defined(WAVEFRONT_SIZE_64)  // RDNA4, unless compiled with -mwavefrontsize64
constexpr uint32_t wave_size = 32;
#else
constexpr uint32_t wave_size = 64;
#endif
inline DEVICE uint32_t lane() { return __builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0U)); }

template <typename T>
inline DEVICE T shuffle(T value, uint32_t from_lane) {
  static_assert(sizeof(T) == 4);
  return __builtin_bit_cast(
      T, __builtin_amdgcn_ds_bpermute(static_cast<int>(from_lane * 4), __builtin_bit_cast(int, value)));
}
template <typename T>
inline DEVICE T shuffle_xor(T value, uint32_t mask) {
  return shuffle(value, lane() ^ mask);
}

template <typename T>
inline DEVICE T atomic_add(T* address, T value) {
  return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
