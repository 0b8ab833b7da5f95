// LDS instructions that move data between lanes: permutes, swizzles and transpose reads.
// Semantics: CDNA3 ISA, chapter 12.12 and 12.1 (ds_swizzle patterns); transpose reads: isa.md's confirmed 16-bit form,
// and the 8, 6 and 4-bit forms by the same rule (a group of 16 lanes reads a matrix of 16 columns row by row; lane j
// receives column j).
#include <array>
#include <bit>
#include <format>

#include "simgpu/decode/registry.h"
#include "simgpu/memory/access.h"
#include "simgpu/memory/rooms.h"

namespace wavejit::simgpu {
namespace {

using Lanes = std::array<uint32_t, wave_lanes>;

Lanes copy_lanes(const Wave& wave, const Operand& operand) {
  Lanes values;
  std::memcpy(values.data(), wave.vgpr[operand.index], sizeof(values));
  return values;
}

void write_active(Wave& wave, const Operand& destination, const Lanes& values) {
  for (uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    wave.vgpr[destination.index][lane] = values[lane];
  }
}

/// Every lane fetches from the lane that its address names; inactive lanes give zero.
void bpermute(Wave& wave, const Instruction& instruction) {
  const Lanes address = copy_lanes(wave, instruction.source[0]);
  const Lanes data = copy_lanes(wave, instruction.source[1]);
  Lanes result{};
  const uint64_t exec = wave.exec();
  for (unsigned lane = 0; lane < wave_lanes; ++lane) {
    const unsigned from = ((address[lane] + static_cast<uint32_t>(instruction.offset)) / 4) % wave_lanes;
    result[lane] = ((exec >> from) & 1) != 0 ? data[from] : 0;
  }
  write_active(wave, instruction.destination[0], result);
}

/// Every active lane sends to the lane that its address names; the highest sender wins, nobody's target gets zero.
void permute(Wave& wave, const Instruction& instruction) {
  const Lanes address = copy_lanes(wave, instruction.source[0]);
  const Lanes data = copy_lanes(wave, instruction.source[1]);
  Lanes result{};
  for (uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    result[((address[lane] + static_cast<uint32_t>(instruction.offset)) / 4) % wave_lanes] = data[lane];
  }
  write_active(wave, instruction.destination[0], result);
}

unsigned swizzle_source(uint32_t pattern, unsigned lane) {
  if (pattern >= 0xc000) {
    // Rotation inside 32 lanes: bit 10 is the direction, bits 9:5 the distance, bits 4:0 the lane bits that stay.
    const unsigned keep = pattern & 0x1f;
    const unsigned distance = (pattern >> 5) & 0x1f;
    const unsigned in_half = lane & 31;
    const unsigned moved = ((pattern >> 10) & 1) != 0 ? in_half - distance : in_half + distance;
    return (lane & 32) | (in_half & keep) | (moved & ~keep & 31);
  }
  if (pattern >= 0x8000) return (lane & ~3u) | ((pattern >> (2 * (lane & 3))) & 3);
  const unsigned and_mask = pattern & 0x1f;
  const unsigned or_mask = (pattern >> 5) & 0x1f;
  const unsigned xor_mask = (pattern >> 10) & 0x1f;
  return (lane & 32) | ((((lane & 31) & and_mask) | or_mask) ^ xor_mask);
}

void swizzle(Wave& wave, const Instruction& instruction) {
  const uint32_t pattern = instruction.immediate;
  if (pattern >= 0xe000) return fault(wave, instruction, std::format("FFT swizzle {:#x} is not simulated", pattern));
  const Lanes data = copy_lanes(wave, instruction.source[0]);
  Lanes result{};
  const uint64_t exec = wave.exec();
  for (unsigned lane = 0; lane < wave_lanes; ++lane) {
    const unsigned from = swizzle_source(pattern, lane);
    result[lane] = ((exec >> from) & 1) != 0 ? data[from] : 0;
  }
  write_active(wave, instruction.destination[0], result);
}

/// `bits` wide elements, `dwords` registers a lane: 16 lanes hold 32·dwords/bits rows of 16 elements. Row k is the
/// memory that lanes k·16/n … read, n elements a lane.
template <unsigned bits, unsigned dwords>
void transpose_read(Wave& wave, const Instruction& instruction) {
  if (wave.exec() != all_lanes) {
    return fault(wave, instruction, std::format("transpose reads need all lanes; EXEC is {:#x}", wave.exec()));
  }
  const uint32_t* address = wave.vgpr[instruction.source[0].index];
  std::array<std::array<uint32_t, dwords>, wave_lanes> read;
  for (unsigned lane = 0; lane < wave_lanes; ++lane) {
    const uint8_t* from = resolve_lds(wave, instruction, address[lane] + static_cast<uint32_t>(instruction.offset),
                                      dwords * 4, static_cast<int>(lane));
    if (from == nullptr) return;
    std::memcpy(read[lane].data(), from, dwords * 4);
  }
  constexpr unsigned elements = 32 * dwords / bits;  // a lane's, before and after
  constexpr unsigned lanes_per_row = 16 / elements;
  constexpr uint32_t mask = (1u << bits) - 1;
  const unsigned destination = instruction.destination[0].index;
  for (unsigned lane = 0; lane < wave_lanes; ++lane) {
    const unsigned group = lane & ~15u;
    const unsigned column = lane & 15;
    std::array<uint32_t, dwords> result{};
    for (unsigned row = 0; row < elements; ++row) {
      const auto& source = read[group + (row * lanes_per_row) + (column / elements)];
      const unsigned from_bit = (column % elements) * bits;
      uint64_t window = source[from_bit / 32];
      if (from_bit / 32 + 1 < dwords) window |= uint64_t{source[(from_bit / 32) + 1]} << 32;
      const uint64_t element = (window >> (from_bit % 32)) & mask;
      const unsigned to_bit = row * bits;
      const uint64_t placed = element << (to_bit % 32);
      result[to_bit / 32] |= static_cast<uint32_t>(placed);
      if (to_bit / 32 + 1 < dwords) result[(to_bit / 32) + 1] |= static_cast<uint32_t>(placed >> 32);
    }
    for (unsigned i = 0; i < dwords; ++i) wave.vgpr[destination + i][lane] = result[i];
  }
}

}  // namespace

void register_lds_lanes(Registry& registry) {
  const auto add = [&](std::string_view name, Handler handler) { registry.add(name, handler, InstructionClass::lds); };
  add("ds_bpermute_b32", bpermute);
  add("ds_permute_b32", permute);
  add("ds_swizzle_b32", swizzle);
  add("ds_read_b64_tr_b16", transpose_read<16, 2>);
  add("ds_read_b64_tr_b8", transpose_read<8, 2>);
  add("ds_read_b64_tr_b4", transpose_read<4, 2>);
  add("ds_read_b96_tr_b6", transpose_read<6, 3>);
}

}  // namespace wavejit::simgpu
