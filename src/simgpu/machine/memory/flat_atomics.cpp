// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// FLAT and GLOBAL atomics. Semantics: CDNA3 ISA, chapter 12.13 and 12.14.
#include <bit>
#include <string>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/atomic_operations.h"
#include "simgpu/machine/memory/flat.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"

namespace wavejit::simgpu {
namespace {

template <typename T>
T data_of(const Wave& wave, unsigned vgpr, unsigned lane) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(wave.vgpr[vgpr][lane] | (std::uint64_t{wave.vgpr[vgpr + 1][lane]} << 32));
  } else {
    return static_cast<T>(wave.vgpr[vgpr][lane]);
  }
}

// Calls `body(place, data register, lane)` → old value for each active lane and returns it where the instruction asks
// for it.
template <FlatSpace space, typename T, typename Body>
void for_each_place(Wave& wave, const Instruction& instruction, Body&& body) {
  const FlatAddress<space> address(wave, instruction, instruction.source[0], instruction.source[2]);
  const unsigned source = instruction.source[1].index;
  const bool returns = instruction.destination_count != 0;
  const unsigned destination = instruction.destination[0].index;
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t place = address.at(lane);
    if (place % sizeof(T) != 0) return report_unaligned(wave, instruction, place, sizeof(T), static_cast<int>(lane));
    std::uint8_t* at = address.resolve_lane(wave, instruction, lane, sizeof(T), true);
    if (at == nullptr) return;
    const auto old = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(body(at, source, lane)));
    if (!returns) continue;
    wave.vgpr[destination][lane] = static_cast<std::uint32_t>(old);
    if constexpr (sizeof(T) == 8) wave.vgpr[destination + 1][lane] = static_cast<std::uint32_t>(old >> 32);
  }
}

template <FlatSpace space, typename T, T (*function)(T, T)>
void atomic(Wave& wave, const Instruction& instruction) {
  for_each_place<space, T>(wave, instruction, [&](std::uint8_t* at, unsigned source, unsigned lane) {
    return atomics::update<T, function>(at, data_of<T>(wave, source, lane));
  });
}

// The data registers hold the new value, then the expected one.
template <FlatSpace space, typename T>
void compare_and_swap(Wave& wave, const Instruction& instruction) {
  for_each_place<space, T>(wave, instruction, [&](std::uint8_t* at, unsigned source, unsigned lane) {
    const T desired = data_of<T>(wave, source, lane);
    const T expected = data_of<T>(wave, source + (sizeof(T) / 4), lane);
    return atomics::compare_and_swap<T>(at, expected, desired);
  });
}

template <FlatSpace space>
void register_space(Registry& registry, Space where, const std::string& prefix) {
  using u32 = std::uint32_t;
  using i32 = std::int32_t;
  using u64 = std::uint64_t;
  using i64 = std::int64_t;
  const auto add = [&](std::string_view name, Handler handler, const Record& record) {
    registry.add(prefix + std::string(name), handler, in_space(where, record));
  };
  add("_atomic_swap", atomic<space, u32, atomics::swap<u32>>, changes<u32>());
  add("_atomic_cmpswap", compare_and_swap<space, u32>, compares_and_swaps<u32>());
  add("_atomic_add", atomic<space, u32, atomics::add<u32>>, changes<u32>());
  add("_atomic_sub", atomic<space, u32, atomics::sub<u32>>, changes<u32>());
  add("_atomic_smin", atomic<space, i32, atomics::minimum<i32>>, changes<i32>());
  add("_atomic_umin", atomic<space, u32, atomics::minimum<u32>>, changes<u32>());
  add("_atomic_smax", atomic<space, i32, atomics::maximum<i32>>, changes<i32>());
  add("_atomic_umax", atomic<space, u32, atomics::maximum<u32>>, changes<u32>());
  add("_atomic_and", atomic<space, u32, atomics::bitwise_and<u32>>, changes<u32>());
  add("_atomic_or", atomic<space, u32, atomics::bitwise_or<u32>>, changes<u32>());
  add("_atomic_xor", atomic<space, u32, atomics::bitwise_xor<u32>>, changes<u32>());
  add("_atomic_inc", atomic<space, u32, atomics::increment<u32>>, changes<u32>());
  add("_atomic_dec", atomic<space, u32, atomics::decrement<u32>>, changes<u32>());
  add("_atomic_swap_x2", atomic<space, u64, atomics::swap<u64>>, changes<u64>());
  add("_atomic_cmpswap_x2", compare_and_swap<space, u64>, compares_and_swaps<u64>());
  add("_atomic_add_x2", atomic<space, u64, atomics::add<u64>>, changes<u64>());
  add("_atomic_sub_x2", atomic<space, u64, atomics::sub<u64>>, changes<u64>());
  add("_atomic_smin_x2", atomic<space, i64, atomics::minimum<i64>>, changes<i64>());
  add("_atomic_umin_x2", atomic<space, u64, atomics::minimum<u64>>, changes<u64>());
  add("_atomic_smax_x2", atomic<space, i64, atomics::maximum<i64>>, changes<i64>());
  add("_atomic_umax_x2", atomic<space, u64, atomics::maximum<u64>>, changes<u64>());
  add("_atomic_and_x2", atomic<space, u64, atomics::bitwise_and<u64>>, changes<u64>());
  add("_atomic_or_x2", atomic<space, u64, atomics::bitwise_or<u64>>, changes<u64>());
  add("_atomic_xor_x2", atomic<space, u64, atomics::bitwise_xor<u64>>, changes<u64>());
  add("_atomic_inc_x2", atomic<space, u64, atomics::increment<u64>>, changes<u64>());
  add("_atomic_dec_x2", atomic<space, u64, atomics::decrement<u64>>, changes<u64>());
  add("_atomic_add_f32", atomic<space, u32, atomics::as_float<u32, float, atomics::add<float>>>, changes<u32>());
  add("_atomic_add_f64", atomic<space, u64, atomics::as_float<u64, double, atomics::add<double>>>, changes<u64>());
  add("_atomic_min_f64", atomic<space, u64, atomics::as_float<u64, double, atomics::minimum_number<double>>>,
      changes<u64>());
  add("_atomic_max_f64", atomic<space, u64, atomics::as_float<u64, double, atomics::maximum_number<double>>>,
      changes<u64>());
  add("_atomic_pk_add_f16", atomic<space, u32, atomics::add_packed_f16>, changes<u32>());
  add("_atomic_pk_add_bf16", atomic<space, u32, atomics::add_packed_bf16>, changes<u32>());
}

}  // namespace

void register_flat_atomics(Registry& registry) {
  register_space<FlatSpace::flat>(registry, Space::flat, "flat");
  register_space<FlatSpace::global>(registry, Space::global, "global");
}

}  // namespace wavejit::simgpu
