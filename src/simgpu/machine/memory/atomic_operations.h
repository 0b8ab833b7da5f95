// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the atomic instructions compute, shared by flat, global, buffer and LDS forms. Semantics: CDNA3 ISA, chapter 12
// (FLAT, MUBUF and DS opcodes).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace wavejit::simgpu::atomics {

template <typename T>
T swap(T, T data) {
  return data;
}
template <typename T>
T add(T old, T data) {
  return old + data;
}
template <typename T>
T sub(T old, T data) {
  return old - data;
}
template <typename T>
T reverse_sub(T old, T data) {
  return data - old;
}
template <typename T>
T minimum(T old, T data) {
  return data < old ? data : old;
}
template <typename T>
T maximum(T old, T data) {
  return data > old ? data : old;
}
template <typename T>
T bitwise_and(T old, T data) {
  return old & data;
}
template <typename T>
T bitwise_or(T old, T data) {
  return old | data;
}
template <typename T>
T bitwise_xor(T old, T data) {
  return old ^ data;
}
template <typename T>
T increment(T old, T data) {
  return old >= data ? 0 : old + 1;
}
template <typename T>
T decrement(T old, T data) {
  return old == 0 || old > data ? data : old - 1;
}

// Floating minimum and maximum that prefer a number to a NaN and order −0 below +0.
template <typename Float>
Float minimum_number(Float old, Float data) {
  if (std::isnan(data)) return old;
  if (std::isnan(old)) return data;
  if (old == data) return std::signbit(old) ? old : data;
  return data < old ? data : old;
}
template <typename Float>
Float maximum_number(Float old, Float data) {
  if (std::isnan(data)) return old;
  if (std::isnan(old)) return data;
  if (old == data) return std::signbit(old) ? data : old;
  return data > old ? data : old;
}

// Applies a floating operation to memory that holds the float's bits.
template <typename Bits, typename Float, Float (*function)(Float, Float)>
Bits as_float(Bits old, Bits data) {
  return std::bit_cast<Bits>(function(std::bit_cast<Float>(old), std::bit_cast<Float>(data)));
}

std::uint32_t add_packed_f16(std::uint32_t old, std::uint32_t data);
std::uint32_t add_packed_bf16(std::uint32_t old, std::uint32_t data);

// One read-modify-write of the host, so that workgroups on other threads see it whole.
template <typename T, T (*function)(T, T)>
T update(std::uint8_t* at, T data) {
  auto* place = reinterpret_cast<T*>(at);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, function(old, data), true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return old;
}
template <typename T>
T compare_and_swap(std::uint8_t* at, T expected, T desired) {
  auto* place = reinterpret_cast<T*>(at);
  T old = expected;
  __atomic_compare_exchange_n(place, &old, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return old;
}

}  // namespace wavejit::simgpu::atomics
