// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MUBUF atomics: all of an access inside the buffer, or nothing happens and zero is returned.
// Semantics: CDNA3 ISA, chapters 9.1 and 12.15.
#include <bit>
#include <type_traits>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/atomic_operations.h"
#include "simgpu/machine/memory/buffer.h"
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

// With a result the data register is the (tied) destination; without, it is the first source.
template <typename T, typename Body>
void for_each_place(Wave& wave, const Instruction& instruction, Body&& body) {
  const bool returns = instruction.destination_count != 0;
  const unsigned first = returns ? 0 : 1;
  const unsigned data = returns ? instruction.destination[0].index : instruction.source[0].index;
  const BufferAddress address(wave, instruction, instruction.source[first], instruction.source[first + 1],
                              instruction.source[first + 2]);
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const BufferAddress::Place place = address.at(lane);
    std::uint64_t old = 0;
    if (place.available >= sizeof(T)) {
      if (place.address % sizeof(T) != 0) {
        return report_unaligned(wave, instruction, place.address, sizeof(T), static_cast<int>(lane));
      }
      std::uint8_t* at = resolve(wave, instruction, place.address, sizeof(T), true, static_cast<int>(lane));
      if (at == nullptr) return;
      old = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(body(at, data, lane)));
    }
    if (!returns) continue;
    wave.vgpr[data][lane] = static_cast<std::uint32_t>(old);
    if constexpr (sizeof(T) == 8) wave.vgpr[data + 1][lane] = static_cast<std::uint32_t>(old >> 32);
  }
}

template <typename T, T (*function)(T, T)>
void atomic(Wave& wave, const Instruction& instruction) {
  for_each_place<T>(wave, instruction, [&](std::uint8_t* at, unsigned data, unsigned lane) {
    return atomics::update<T, function>(at, data_of<T>(wave, data, lane));
  });
}

template <typename T>
void compare_and_swap(Wave& wave, const Instruction& instruction) {
  for_each_place<T>(wave, instruction, [&](std::uint8_t* at, unsigned data, unsigned lane) {
    const T desired = data_of<T>(wave, data, lane);
    const T expected = data_of<T>(wave, data + (sizeof(T) / 4), lane);
    return atomics::compare_and_swap<T>(at, expected, desired);
  });
}

}  // namespace

void register_buffer_atomics(Registry& registry) {
  using u32 = std::uint32_t;
  using i32 = std::int32_t;
  using u64 = std::uint64_t;
  using i64 = std::int64_t;
  const auto add = [&](std::string_view name, Handler handler, const Record& record) {
    registry.add(name, handler, in_space(Space::buffer, record));
  };
  add("buffer_atomic_swap", atomic<u32, atomics::swap<u32>>, changes<u32>());
  add("buffer_atomic_cmpswap", compare_and_swap<u32>, compares_and_swaps<u32>());
  add("buffer_atomic_add", atomic<u32, atomics::add<u32>>, changes<u32>());
  add("buffer_atomic_sub", atomic<u32, atomics::sub<u32>>, changes<u32>());
  add("buffer_atomic_smin", atomic<i32, atomics::minimum<i32>>, changes<i32>());
  add("buffer_atomic_umin", atomic<u32, atomics::minimum<u32>>, changes<u32>());
  add("buffer_atomic_smax", atomic<i32, atomics::maximum<i32>>, changes<i32>());
  add("buffer_atomic_umax", atomic<u32, atomics::maximum<u32>>, changes<u32>());
  add("buffer_atomic_and", atomic<u32, atomics::bitwise_and<u32>>, changes<u32>());
  add("buffer_atomic_or", atomic<u32, atomics::bitwise_or<u32>>, changes<u32>());
  add("buffer_atomic_xor", atomic<u32, atomics::bitwise_xor<u32>>, changes<u32>());
  add("buffer_atomic_inc", atomic<u32, atomics::increment<u32>>, changes<u32>());
  add("buffer_atomic_dec", atomic<u32, atomics::decrement<u32>>, changes<u32>());
  add("buffer_atomic_swap_x2", atomic<u64, atomics::swap<u64>>, changes<u64>());
  add("buffer_atomic_cmpswap_x2", compare_and_swap<u64>, compares_and_swaps<u64>());
  add("buffer_atomic_add_x2", atomic<u64, atomics::add<u64>>, changes<u64>());
  add("buffer_atomic_sub_x2", atomic<u64, atomics::sub<u64>>, changes<u64>());
  add("buffer_atomic_smin_x2", atomic<i64, atomics::minimum<i64>>, changes<i64>());
  add("buffer_atomic_umin_x2", atomic<u64, atomics::minimum<u64>>, changes<u64>());
  add("buffer_atomic_smax_x2", atomic<i64, atomics::maximum<i64>>, changes<i64>());
  add("buffer_atomic_umax_x2", atomic<u64, atomics::maximum<u64>>, changes<u64>());
  add("buffer_atomic_and_x2", atomic<u64, atomics::bitwise_and<u64>>, changes<u64>());
  add("buffer_atomic_or_x2", atomic<u64, atomics::bitwise_or<u64>>, changes<u64>());
  add("buffer_atomic_xor_x2", atomic<u64, atomics::bitwise_xor<u64>>, changes<u64>());
  add("buffer_atomic_inc_x2", atomic<u64, atomics::increment<u64>>, changes<u64>());
  add("buffer_atomic_dec_x2", atomic<u64, atomics::decrement<u64>>, changes<u64>());
  add("buffer_atomic_add_f32", atomic<u32, atomics::as_float<u32, float, atomics::add<float>>>, changes<u32>());
  add("buffer_atomic_add_f64", atomic<u64, atomics::as_float<u64, double, atomics::add<double>>>, changes<u64>());
  add("buffer_atomic_min_f64", atomic<u64, atomics::as_float<u64, double, atomics::minimum_number<double>>>,
      changes<u64>());
  add("buffer_atomic_max_f64", atomic<u64, atomics::as_float<u64, double, atomics::maximum_number<double>>>,
      changes<u64>());
  add("buffer_atomic_pk_add_f16", atomic<u32, atomics::add_packed_f16>, changes<u32>());
  add("buffer_atomic_pk_add_bf16", atomic<u32, atomics::add_packed_bf16>, changes<u32>());
}

}  // namespace wavejit::simgpu
