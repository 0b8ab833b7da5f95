// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What RDNA4's memory instructions have of their own: loads into half a register keep the other half, scalar loads of
// less than a dword and of three, transposing loads, a compare-and-store of LDS with its data the other way round, and
// the atomics that came with it. Semantics: AMD's RDNA4 ISA document; LLVM 22 (d16PreservesUnusedBits).
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <format>
#include <string>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/atomic_operations.h"
#include "simgpu/machine/memory/buffer.h"
#include "simgpu/machine/memory/flat.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"
#include "simgpu/machine/memory/scalar_address.h"
#include "simgpu/machine/memory/transfer.h"

namespace wavejit::simgpu {
namespace rdna4 {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// The half that `kind` names.
template <LoadKind kind>
void load_half(Wave& wave, unsigned destination, unsigned lane, const std::uint8_t* from) {
  u32 value = 0;
  if constexpr (kind.bytes == 1) {
    const auto byte = load_device<std::uint8_t>(from);
    value = kind.sign_extend ? static_cast<u32>(static_cast<std::int8_t>(byte)) : byte;
  } else {
    value = load_device<std::uint16_t>(from);
  }
  u32& target = wave.vgpr[destination][lane];
  target = kind.half == 0 ? (target & 0xffff0000u) | (value & 0xffffu) : (target & 0xffffu) | (value << 16);
}

template <FlatSpace space, LoadKind kind>
void load(Wave& wave, const Instruction& instruction) {
  const FlatAddress<space> address(wave, instruction, instruction.source[0], instruction.source[1]);
  for (u64 rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint8_t* from = address.resolve_lane(wave, instruction, lane, kind.bytes, false);
    if (from == nullptr) return;
    load_half<kind>(wave, instruction.destination[0].index, lane, from);
  }
  if (instruction.sc0 || instruction.sc1) std::atomic_thread_fence(std::memory_order_acquire);
}

template <LoadKind kind>
void load_buffer(Wave& wave, const Instruction& instruction) {
  const BufferAddress address(wave, instruction, instruction.source[0], instruction.source[1], instruction.source[2]);
  constexpr std::array<std::uint8_t, 2> zeros{};
  for (u64 rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const BufferAddress::Place place = address.at(lane);
    const std::uint8_t* from = zeros.data();
    if (place.available >= kind.bytes) {
      from = resolve(wave, instruction, place.address, kind.bytes, false, static_cast<int>(lane));
      if (from == nullptr) return;
    }
    load_half<kind>(wave, instruction.destination[0].index, lane, from);
  }
}

template <LoadKind kind>
void load_lds(Wave& wave, const Instruction& instruction) {
  const u32* address = wave.vgpr[instruction.source[0].index];
  for (u64 rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    load_half<kind>(wave, instruction.destination[0].index, lane,
                    resolve_lds(wave, address[lane] + static_cast<u32>(instruction.offset), kind.bytes));
  }
}

// global_load_tr_b128, _b64: every lane of the first 32 reads 16 (8) bytes at its own address; which elements it gets,
// a transposition of groups says. In waves of 64 the other half gives no addresses.
struct Transposed {
  std::array<std::array<std::uint8_t, 16>, lane_places> bytes{};
};
template <unsigned Bytes>
bool read_rows(Wave& wave, const Instruction& instruction, Transposed& rows) {
  const FlatAddress<FlatSpace::global> address(wave, instruction, instruction.source[0], instruction.source[1]);
  constexpr unsigned readers = 32;
  for (unsigned lane = 0; lane < readers; ++lane) {
    const std::uint8_t* from = address.resolve_lane(wave, instruction, lane, Bytes, false);
    if (from == nullptr) return false;
    copy_from_device<Bytes>(rows.bytes[lane].data(), from);
  }
  return true;
}
bool asks_all_lanes(Wave& wave, const Instruction& instruction) {
  if (wave.exec() == wave.all_lanes) return true;
  // EXEC = 0 does nothing; what a part of the lanes would do is not defined.
  if (wave.exec() != 0) {
    fault(wave, instruction, std::format("transposing loads need all lanes; EXEC is {:#x}", wave.exec()));
  }
  return false;
}
// Groups of eight lanes, eight elements of 16 bits each: lane L gets element L % 8 of each lane of its group.
void load_transposed_halves(Wave& wave, const Instruction& instruction) {
  if (!asks_all_lanes(wave, instruction)) return;
  if (wave.lane_count == lane_places) {
    return fault(wave, instruction, "transposing loads of waves of 64 are not simulated");
  }
  Transposed rows;
  if (!read_rows<16>(wave, instruction, rows)) return;
  for (unsigned lane = 0; lane < wave.lane_count; ++lane) {
    for (unsigned word = 0; word < 4; ++word) {
      u32 value = 0;
      for (unsigned part = 0; part < 2; ++part) {
        const unsigned from = (lane & ~7u) + (2 * word) + part;
        std::uint16_t half = 0;
        std::memcpy(&half, rows.bytes[from].data() + (2 * (lane & 7u)), 2);
        value |= u32{half} << (16 * part);
      }
      wave.vgpr[instruction.destination[0].index + word][lane] = value;
    }
  }
}
// Byte n of lane 4g + i goes to lane 16(g / 4) + 8(g % 2) + n, dword (g % 4) / 2, byte i.
void load_transposed_bytes(Wave& wave, const Instruction& instruction) {
  if (!asks_all_lanes(wave, instruction)) return;
  if (wave.lane_count == lane_places) {
    return fault(wave, instruction, "transposing loads of waves of 64 are not simulated");
  }
  Transposed rows;
  if (!read_rows<8>(wave, instruction, rows)) return;
  const unsigned first = instruction.destination[0].index;
  for (unsigned word = 0; word < 2; ++word) {
    for (unsigned lane = 0; lane < wave.lane_count; ++lane) wave.vgpr[first + word][lane] = 0;
  }
  for (unsigned lane = 0; lane < wave.lane_count; ++lane) {
    const unsigned group = lane / 4;
    for (unsigned n = 0; n < 8; ++n) {
      const unsigned to = (16 * (group / 4)) + (8 * (group % 2)) + n;
      wave.vgpr[first + ((group % 4) / 2)][to] |= u32{rows.bytes[lane][n]} << (8 * (lane % 4));
    }
  }
}

template <unsigned dwords>
void load_scalars(Wave& wave, const Instruction& instruction) {
  const std::uint8_t* from = resolve(wave, instruction, scalar_address(wave, instruction), dwords * 4, false, -1);
  if (from == nullptr) return;
  load_words<dwords>(&wave.sgpr[instruction.destination[0].index], from);
}
// Less than a dword: at any byte.
template <typename T>
void load_scalar_part(Wave& wave, const Instruction& instruction) {
  const u64 address = wave.scalar64(instruction.source[0]) + static_cast<u64>(scalar_offset(wave, instruction));
  const std::uint8_t* from = resolve(wave, instruction, address, sizeof(T), false, -1);
  if (from == nullptr) return;
  const auto value = static_cast<T>(load_device<std::make_unsigned_t<T>>(from));
  wave.set_scalar(instruction.destination[0], static_cast<u32>(static_cast<std::int32_t>(value)));
}

template <typename T>
T data_of(const Wave& wave, const Operand& operand, unsigned lane) {
  if constexpr (sizeof(T) == 8) {
    return wave.vgpr[operand.index][lane] | (u64{wave.vgpr[operand.index + 1][lane]} << 32);
  } else {
    return wave.vgpr[operand.index][lane];
  }
}
template <typename T>
void give(Wave& wave, const Instruction& instruction, unsigned lane, T old) {
  if (instruction.destination_count == 0) return;
  wave.vgpr[instruction.destination[0].index][lane] = static_cast<u32>(old);
  if constexpr (sizeof(T) == 8) wave.vgpr[instruction.destination[0].index + 1][lane] = static_cast<u32>(old >> 32);
}
template <typename T, typename Body>
void for_each_local(Wave& wave, const Instruction& instruction, Body&& body) {
  const u32* address = wave.vgpr[instruction.source[0].index];
  for (u64 rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const u32 offset = address[lane] + static_cast<u32>(instruction.offset);
    if (offset % sizeof(T) != 0) {
      return report_unaligned(wave, instruction, offset, sizeof(T), static_cast<int>(lane));
    }
    std::uint8_t* at = resolve_lds(wave, offset, sizeof(T));
    T old{};
    std::memcpy(&old, at, sizeof(T));
    const T next = body(old, lane);
    std::memcpy(at, &next, sizeof(T));
    give<T>(wave, instruction, lane, old);
  }
}
// The new value, then the expected one.
template <typename T>
void compare_and_store(Wave& wave, const Instruction& instruction) {
  for_each_local<T>(wave, instruction, [&](T old, unsigned lane) {
    return old == data_of<T>(wave, instruction.source[2], lane) ? data_of<T>(wave, instruction.source[1], lane) : old;
  });
}
template <u32 (*function)(u32, u32)>
void local_atomic(Wave& wave, const Instruction& instruction) {
  for_each_local<u32>(wave, instruction, [&](u32 old, unsigned lane) {
    return function(old, data_of<u32>(wave, instruction.source[1], lane));
  });
}

u32 subtract_clamped(u32 old, u32 data) { return old > data ? old - data : 0; }
u32 subtract_if_not_less(u32 old, u32 data) { return old >= data ? old - data : old; }

template <FlatSpace space, u32 (*function)(u32, u32)>
void flat_atomic(Wave& wave, const Instruction& instruction) {
  const FlatAddress<space> address(wave, instruction, instruction.source[0], instruction.source[2]);
  for (u64 rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const u64 place = address.at(lane);
    if (place % 4 != 0) return report_unaligned(wave, instruction, place, 4, static_cast<int>(lane));
    std::uint8_t* at = address.resolve_lane(wave, instruction, lane, 4, true);
    if (at == nullptr) return;
    give<u32>(wave, instruction, lane,
              atomics::update<u32, function>(at, data_of<u32>(wave, instruction.source[1], lane)));
  }
}

template <u32 (*function)(u32, u32)>
void buffer_atomic(Wave& wave, const Instruction& instruction) {
  // With a result the data register is the destination; without, the first source.
  const bool returns = instruction.destination_count != 0;
  const unsigned first = returns ? 0 : 1;
  const unsigned data = returns ? instruction.destination[0].index : instruction.source[0].index;
  const BufferAddress address(wave, instruction, instruction.source[first], instruction.source[first + 1],
                              instruction.source[first + 2]);
  for (u64 rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const BufferAddress::Place place = address.at(lane);
    u32 old = 0;
    if (place.available >= 4) {
      if (place.address % 4 != 0) return report_unaligned(wave, instruction, place.address, 4, static_cast<int>(lane));
      std::uint8_t* at = resolve(wave, instruction, place.address, 4, true, static_cast<int>(lane));
      if (at == nullptr) return;
      old = atomics::update<u32, function>(at, wave.vgpr[data][lane]);
    }
    if (returns) wave.vgpr[data][lane] = old;
  }
}

constexpr Record keeps_half(Record record) {
  record.keeps_destination = true;
  return record;
}

template <FlatSpace space>
void register_halves_and_atomics(Registry& registry, Space where, const std::string& prefix) {
  const auto half = [&](const char* name, Handler handler, const LoadKind& kind) {
    registry.add_own(prefix + name, handler, keeps_half(in_space(where, loads(kind))));
  };
  half("_load_d16_u8", load<space, load_ubyte_d16>, load_ubyte_d16);
  half("_load_d16_hi_u8", load<space, load_ubyte_d16_hi>, load_ubyte_d16_hi);
  half("_load_d16_i8", load<space, load_sbyte_d16>, load_sbyte_d16);
  half("_load_d16_hi_i8", load<space, load_sbyte_d16_hi>, load_sbyte_d16_hi);
  half("_load_d16_b16", load<space, load_short_d16>, load_short_d16);
  half("_load_d16_hi_b16", load<space, load_short_d16_hi>, load_short_d16_hi);
  if constexpr (space != FlatSpace::scratch) {
    const auto atomic = [&](const char* name, Handler handler) {
      registry.add_own(prefix + name, handler, in_space(where, changes<u32>()));
    };
    atomic("_atomic_sub_clamp_u32", flat_atomic<space, subtract_clamped>);
    atomic("_atomic_cond_sub_u32", flat_atomic<space, subtract_if_not_less>);
    atomic("_atomic_min_num_f32", flat_atomic<space, atomics::as_float<u32, float, atomics::minimum_number<float>>>);
    atomic("_atomic_max_num_f32", flat_atomic<space, atomics::as_float<u32, float, atomics::maximum_number<float>>>);
  }
}

void register_scalar_loads(Registry& registry) {
  const auto add = [&](std::string_view name, Handler handler, unsigned bytes) {
    registry.add_own(name, handler,
                     {.instruction_class = InstructionClass::memory,
                      .kind = IssueKind::scalar_load,
                      .space = Space::scalar,
                      .loads = true,
                      .counts_local = true,
                      .bytes = static_cast<std::uint8_t>(bytes)});
  };
  add("s_load_b96", load_scalars<3>, 12);
  add("s_load_u8", load_scalar_part<std::uint8_t>, 1);
  add("s_load_i8", load_scalar_part<std::int8_t>, 1);
  add("s_load_u16", load_scalar_part<std::uint16_t>, 2);
  add("s_load_i16", load_scalar_part<std::int16_t>, 2);
}

void register_local(Registry& registry) {
  const auto half = [&](const char* name, Handler handler, const LoadKind& kind) {
    registry.add_own(name, handler, keeps_half(in_lds(loads(kind))));
  };
  half("ds_load_u8_d16", load_lds<load_ubyte_d16>, load_ubyte_d16);
  half("ds_load_u8_d16_hi", load_lds<load_ubyte_d16_hi>, load_ubyte_d16_hi);
  half("ds_load_i8_d16", load_lds<load_sbyte_d16>, load_sbyte_d16);
  half("ds_load_i8_d16_hi", load_lds<load_sbyte_d16_hi>, load_sbyte_d16_hi);
  half("ds_load_u16_d16", load_lds<load_short_d16>, load_short_d16);
  half("ds_load_u16_d16_hi", load_lds<load_short_d16_hi>, load_short_d16_hi);
  const auto both = [&](const std::string& name, const std::string& type, Handler handler, const Record& record) {
    registry.add_own(name + "_" + type, handler, in_lds(record));
    registry.add_own(name + "_rtn_" + type, handler, in_lds(record));
  };
  both("ds_cmpstore", "b32", compare_and_store<u32>, compares_and_swaps<u32>());
  both("ds_cmpstore", "b64", compare_and_store<u64>, compares_and_swaps<u64>());
  both("ds_sub_clamp", "u32", local_atomic<subtract_clamped>, changes<u32>());
  both("ds_cond_sub", "u32", local_atomic<subtract_if_not_less>, changes<u32>());
}

}  // namespace
}  // namespace rdna4

void register_rdna4_memory(Registry& registry) {
  using namespace rdna4;
  register_halves_and_atomics<FlatSpace::flat>(registry, Space::flat, "flat");
  register_halves_and_atomics<FlatSpace::global>(registry, Space::global, "global");
  register_halves_and_atomics<FlatSpace::scratch>(registry, Space::scratch, "scratch");
  const auto buffer_half = [&](const char* name, Handler handler, const LoadKind& kind) {
    registry.add_own(name, handler, keeps_half(in_space(Space::buffer, loads(kind))));
  };
  buffer_half("buffer_load_d16_u8", load_buffer<load_ubyte_d16>, load_ubyte_d16);
  buffer_half("buffer_load_d16_hi_u8", load_buffer<load_ubyte_d16_hi>, load_ubyte_d16_hi);
  buffer_half("buffer_load_d16_i8", load_buffer<load_sbyte_d16>, load_sbyte_d16);
  buffer_half("buffer_load_d16_hi_i8", load_buffer<load_sbyte_d16_hi>, load_sbyte_d16_hi);
  buffer_half("buffer_load_d16_b16", load_buffer<load_short_d16>, load_short_d16);
  buffer_half("buffer_load_d16_hi_b16", load_buffer<load_short_d16_hi>, load_short_d16_hi);
  const auto buffer = [&](const char* name, Handler handler) {
    registry.add_own(name, handler, in_space(Space::buffer, changes<u32>()));
  };
  buffer("buffer_atomic_sub_clamp_u32", buffer_atomic<subtract_clamped>);
  buffer("buffer_atomic_cond_sub_u32", buffer_atomic<subtract_if_not_less>);
  buffer("buffer_atomic_min_num_f32", buffer_atomic<atomics::as_float<u32, float, atomics::minimum_number<float>>>);
  buffer("buffer_atomic_max_num_f32", buffer_atomic<atomics::as_float<u32, float, atomics::maximum_number<float>>>);
  register_scalar_loads(registry);
  register_local(registry);
  Record transposes = in_space(Space::global, loads(load_dwordx4));
  transposes.action = Action::transpose_read;
  transposes.all_lanes = true;
  registry.add_own("global_load_tr_b128", load_transposed_halves, transposes);
  transposes.bytes = 8;
  registry.add_own("global_load_tr_b64", load_transposed_bytes, transposes);
}

}  // namespace wavejit::simgpu
