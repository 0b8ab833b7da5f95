// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS atomics. A workgroup runs on one host thread, so these need no host atomics.
// Semantics: CDNA3 ISA, chapter 12.12. Note that the order of the two data operands of compare-and-store is the reverse
// of the global form: expected value first.
#include <bit>
#include <string>
#include <type_traits>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/access.h"
#include "simgpu/machine/memory/atomic_operations.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"

namespace wavejit::simgpu {
namespace {

template <typename T>
T data_of(const Wave& wave, const Operand& operand, unsigned lane) {
  const unsigned vgpr = operand.index;
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(wave.vgpr[vgpr][lane] | (std::uint64_t{wave.vgpr[vgpr + 1][lane]} << 32));
  } else {
    return static_cast<T>(wave.vgpr[vgpr][lane]);
  }
}

template <typename T, typename Body>
void for_each_place(Wave& wave, const Instruction& instruction, Body&& body) {
  const bool returns = instruction.destination_count != 0;
  const std::uint32_t* address = wave.vgpr[instruction.source[0].index];
  const unsigned destination = instruction.destination[0].index;
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t offset = address[lane] + static_cast<std::uint32_t>(instruction.offset);
    if (offset % sizeof(T) != 0) {
      return report_unaligned(wave, instruction, offset, sizeof(T), static_cast<int>(lane));
    }
    std::uint8_t* at = resolve_lds(wave, offset, sizeof(T));
    T old{};
    std::memcpy(&old, at, sizeof(T));
    const T next = body(old, lane);
    std::memcpy(at, &next, sizeof(T));
    if (!returns) continue;
    const auto bits = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(old));
    wave.vgpr[destination][lane] = static_cast<std::uint32_t>(bits);
    if constexpr (sizeof(T) == 8) wave.vgpr[destination + 1][lane] = static_cast<std::uint32_t>(bits >> 32);
  }
}

template <typename T, T (*function)(T, T)>
void atomic(Wave& wave, const Instruction& instruction) {
  for_each_place<T>(wave, instruction,
                    [&](T old, unsigned lane) { return function(old, data_of<T>(wave, instruction.source[1], lane)); });
}

template <typename T>
void compare_and_store(Wave& wave, const Instruction& instruction) {
  for_each_place<T>(wave, instruction, [&](T old, unsigned lane) {
    const T expected = data_of<T>(wave, instruction.source[1], lane);
    return old == expected ? data_of<T>(wave, instruction.source[2], lane) : old;
  });
}

// Masked or: clears the bits of the first data operand, then sets those of the second.
template <typename T>
void masked_or(Wave& wave, const Instruction& instruction) {
  for_each_place<T>(wave, instruction, [&](T old, unsigned lane) {
    return (old & ~data_of<T>(wave, instruction.source[1], lane)) | data_of<T>(wave, instruction.source[2], lane);
  });
}

}  // namespace

void register_lds_atomics(Registry& registry) {
  using u32 = std::uint32_t;
  using i32 = std::int32_t;
  using u64 = std::uint64_t;
  using i64 = std::int64_t;
  // "ds_add" → ds_add_u32 and ds_add_rtn_u32.
  const auto add = [&](const std::string& name, const std::string& type, Handler handler, const Record& record) {
    registry.add(name + "_" + type, handler, in_lds(record));
    registry.add(name + "_rtn_" + type, handler, in_lds(record));
  };
  add("ds_add", "u32", atomic<u32, atomics::add<u32>>, changes<u32>());
  add("ds_sub", "u32", atomic<u32, atomics::sub<u32>>, changes<u32>());
  add("ds_rsub", "u32", atomic<u32, atomics::reverse_sub<u32>>, changes<u32>());
  add("ds_inc", "u32", atomic<u32, atomics::increment<u32>>, changes<u32>());
  add("ds_dec", "u32", atomic<u32, atomics::decrement<u32>>, changes<u32>());
  add("ds_min", "i32", atomic<i32, atomics::minimum<i32>>, changes<i32>());
  add("ds_max", "i32", atomic<i32, atomics::maximum<i32>>, changes<i32>());
  add("ds_min", "u32", atomic<u32, atomics::minimum<u32>>, changes<u32>());
  add("ds_max", "u32", atomic<u32, atomics::maximum<u32>>, changes<u32>());
  add("ds_and", "b32", atomic<u32, atomics::bitwise_and<u32>>, changes<u32>());
  add("ds_or", "b32", atomic<u32, atomics::bitwise_or<u32>>, changes<u32>());
  add("ds_xor", "b32", atomic<u32, atomics::bitwise_xor<u32>>, changes<u32>());
  add("ds_mskor", "b32", masked_or<u32>, changes<u32>());
  add("ds_cmpst", "b32", compare_and_store<u32>, compares_and_swaps<u32>());
  add("ds_cmpst", "f32", compare_and_store<u32>, compares_and_swaps<u32>());
  add("ds_min", "f32", atomic<u32, atomics::as_float<u32, float, atomics::minimum_number<float>>>, changes<u32>());
  add("ds_max", "f32", atomic<u32, atomics::as_float<u32, float, atomics::maximum_number<float>>>, changes<u32>());
  add("ds_add", "f32", atomic<u32, atomics::as_float<u32, float, atomics::add<float>>>, changes<u32>());
  add("ds_add", "u64", atomic<u64, atomics::add<u64>>, changes<u64>());
  add("ds_sub", "u64", atomic<u64, atomics::sub<u64>>, changes<u64>());
  add("ds_rsub", "u64", atomic<u64, atomics::reverse_sub<u64>>, changes<u64>());
  add("ds_inc", "u64", atomic<u64, atomics::increment<u64>>, changes<u64>());
  add("ds_dec", "u64", atomic<u64, atomics::decrement<u64>>, changes<u64>());
  add("ds_min", "i64", atomic<i64, atomics::minimum<i64>>, changes<i64>());
  add("ds_max", "i64", atomic<i64, atomics::maximum<i64>>, changes<i64>());
  add("ds_min", "u64", atomic<u64, atomics::minimum<u64>>, changes<u64>());
  add("ds_max", "u64", atomic<u64, atomics::maximum<u64>>, changes<u64>());
  add("ds_and", "b64", atomic<u64, atomics::bitwise_and<u64>>, changes<u64>());
  add("ds_or", "b64", atomic<u64, atomics::bitwise_or<u64>>, changes<u64>());
  add("ds_xor", "b64", atomic<u64, atomics::bitwise_xor<u64>>, changes<u64>());
  add("ds_mskor", "b64", masked_or<u64>, changes<u64>());
  add("ds_cmpst", "b64", compare_and_store<u64>, compares_and_swaps<u64>());
  add("ds_cmpst", "f64", compare_and_store<u64>, compares_and_swaps<u64>());
  add("ds_min", "f64", atomic<u64, atomics::as_float<u64, double, atomics::minimum_number<double>>>, changes<u64>());
  add("ds_max", "f64", atomic<u64, atomics::as_float<u64, double, atomics::maximum_number<double>>>, changes<u64>());
  add("ds_add", "f64", atomic<u64, atomics::as_float<u64, double, atomics::add<double>>>, changes<u64>());
  add("ds_pk_add", "f16", atomic<u32, atomics::add_packed_f16>, changes<u32>());
  add("ds_pk_add", "bf16", atomic<u32, atomics::add_packed_bf16>, changes<u32>());
  registry.add("ds_wrxchg_rtn_b32", atomic<u32, atomics::swap<u32>>, in_lds(changes<u32>()));
  registry.add("ds_wrxchg_rtn_b64", atomic<u64, atomics::swap<u64>>, in_lds(changes<u64>()));
}

}  // namespace wavejit::simgpu
