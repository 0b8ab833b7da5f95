// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS instructions that move data between lanes: permutes, swizzles and transpose reads.
// Semantics: CDNA3 ISA, chapter 12.12 and 12.1 (ds_swizzle patterns); transpose reads: docs/isa.md's confirmed 16-bit
// form, and the 8, 6 and 4-bit forms by the same rule (a group of 16 lanes reads a matrix of 16 columns row by row;
// lane j receives column j).
#include <array>
#include <bit>
#include <format>
#include <type_traits>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/access.h"
#include "simgpu/machine/memory/lane_kernels.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"

namespace wavejit::simgpu {
namespace {

using Lanes = std::array<std::uint32_t, lane_places>;

Lanes copy_lanes(const Wave& wave, const Operand& operand) {
  Lanes values;
  std::memcpy(values.data(), wave.vgpr[operand.index], sizeof(values));
  return values;
}

void write_active(Wave& wave, const Operand& destination, const Lanes& values) {
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    wave.vgpr[destination.index][lane] = values[lane];
  }
}

// Every lane fetches from the lane that its address names; inactive lanes give zero.
void bpermute(Wave& wave, const Instruction& instruction) {
  const Lanes address = copy_lanes(wave, instruction.source[0]);
  const Lanes data = copy_lanes(wave, instruction.source[1]);
  Lanes result{};
  const std::uint64_t exec = wave.exec();
  const unsigned last = wave.lane_count - 1;
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const unsigned from = ((address[lane] + static_cast<std::uint32_t>(instruction.offset)) / 4) & last;
    result[lane] = ((exec >> from) & 1) != 0 ? data[from] : 0;
  }
  write_active(wave, instruction.destination[0], result);
}

// Every active lane sends to the lane that its address names; the highest sender wins, nobody's target gets zero.
void permute(Wave& wave, const Instruction& instruction) {
  const Lanes address = copy_lanes(wave, instruction.source[0]);
  const Lanes data = copy_lanes(wave, instruction.source[1]);
  Lanes result{};
  const unsigned last = wave.lane_count - 1;
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    result[((address[lane] + static_cast<std::uint32_t>(instruction.offset)) / 4) & last] = data[lane];
  }
  write_active(wave, instruction.destination[0], result);
}

unsigned swizzle_source(std::uint32_t pattern, unsigned lane) {
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
  const std::uint32_t pattern = instruction.immediate;
  if (pattern >= 0xe000) return fault(wave, instruction, std::format("FFT swizzle {:#x} is not simulated", pattern));
  const Lanes data = copy_lanes(wave, instruction.source[0]);
  Lanes result{};
  const std::uint64_t exec = wave.exec();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const unsigned from = swizzle_source(pattern, lane);
    result[lane] = ((exec >> from) & 1) != 0 ? data[from] : 0;
  }
  write_active(wave, instruction.destination[0], result);
}

// Elements of `bits` bits, `dwords` registers a lane. What 16 lanes read, one after the other, is a matrix of 16
// columns in row order.
template <unsigned bits, unsigned dwords>
class TransposeGroup {
 public:
  void read(unsigned lane, const std::uint8_t* from) {
    std::memcpy(&words_[static_cast<std::size_t>(lane) * dwords], from, dwords * 4);
  }

  void write(Wave& wave, unsigned destination, unsigned first_lane) const {
    if constexpr (bits == 16 || bits == 8) {
      // Whole elements: rows interleave into registers, lane by lane.
      using Element = std::conditional_t<bits == 16, std::uint16_t, std::uint8_t>;
      std::array<std::array<Element, 16>, elements> rows;
      static_assert(sizeof(rows) == sizeof(words_));
      std::memcpy(rows.data(), words_.data(), sizeof(rows));
      constexpr unsigned per_register = 32 / bits;
      for (unsigned i = 0; i < dwords; ++i) {
        std::uint32_t* registers = wave.vgpr[destination + i] + first_lane;
        for (unsigned lane = 0; lane < 16; ++lane) {
          std::uint32_t value = 0;
          for (unsigned part = 0; part < per_register; ++part) {
            value |= std::uint32_t{rows[(i * per_register) + part][lane]} << (part * bits);
          }
          registers[lane] = value;
        }
      }
    } else {
      for (unsigned lane = 0; lane < 16; ++lane) {
        std::array<std::uint32_t, dwords + 1> result{};
        for (unsigned row = 0; row < elements; ++row) {
          const std::uint64_t placed = std::uint64_t{element((16 * row) + lane)} << ((row * bits) % 32);
          result[row * bits / 32] |= static_cast<std::uint32_t>(placed);
          result[(row * bits / 32) + 1] |= static_cast<std::uint32_t>(placed >> 32);
        }
        for (unsigned i = 0; i < dwords; ++i) wave.vgpr[destination + i][first_lane + lane] = result[i];
      }
    }
  }

 private:
  static constexpr unsigned elements = 32 * dwords / bits;  // a lane's, before and after; also the number of rows
  std::uint32_t element(unsigned index) const {
    const unsigned bit = index * bits;
    std::uint64_t window = words_[bit / 32];
    if ((bit / 32) + 1 < words_.size()) window |= std::uint64_t{words_[(bit / 32) + 1]} << 32;
    return static_cast<std::uint32_t>(window >> (bit % 32)) & ((1u << bits) - 1);
  }
  std::array<std::uint32_t, std::size_t{16} * dwords> words_;
};

template <unsigned bits, unsigned dwords>
void transpose_read(Wave& wave, const Instruction& instruction) {
  if (wave.exec() != wave.all_lanes) {
    return fault(wave, instruction, std::format("transpose reads need all lanes; EXEC is {:#x}", wave.exec()));
  }
  const unsigned destination = instruction.destination[0].index;
  if constexpr (bits == 16) {
    const std::uint32_t* const address = wave.vgpr[instruction.source[0].index];
    const auto offset = static_cast<std::uint32_t>(instruction.offset);
    if (all_inside_lds(wave, address, offset, dwords * 4)) {
      return lanes::kernels(wave).read_transposed_halves(&wave.vgpr[destination], wave.lds + offset, address);
    }
  }
  // All addresses before any result: the destination may be the address register.
  const Lanes address = copy_lanes(wave, instruction.source[0]);
  for (unsigned first = 0; first < wave.lane_count; first += 16) {
    TransposeGroup<bits, dwords> group;
    for (unsigned lane = 0; lane < 16; ++lane) {
      group.read(lane,
                 resolve_lds(wave, address[first + lane] + static_cast<std::uint32_t>(instruction.offset), dwords * 4));
    }
    group.write(wave, destination, first);
  }
}

}  // namespace

void register_lds_lanes(Registry& registry) {
  // The crossbar alone, no memory.
  const auto crossbar = [&](std::string_view name, Handler handler, std::uint8_t steering) {
    registry.add(name, handler,
                 {.instruction_class = InstructionClass::lds,
                  .kind = IssueKind::lds_lanes,
                  .flow = Flow::move,
                  .steering = steering,
                  .counts_local = true});
  };
  crossbar("ds_bpermute_b32", bpermute, 1);
  crossbar("ds_permute_b32", permute, 1);
  crossbar("ds_swizzle_b32", swizzle, 0);
  const auto transpose = [&](std::string_view name, Handler handler, const LoadKind& kind) {
    Record record = in_lds(loads(kind));
    record.action = Action::transpose_read;
    record.all_lanes = true;
    registry.add(name, handler, record);
  };
  transpose("ds_read_b64_tr_b16", transpose_read<16, 2>, load_dwordx2);
  transpose("ds_read_b64_tr_b8", transpose_read<8, 2>, load_dwordx2);
  transpose("ds_read_b64_tr_b4", transpose_read<4, 2>, load_dwordx2);
  transpose("ds_read_b96_tr_b6", transpose_read<6, 3>, load_dwordx3);
}

}  // namespace wavejit::simgpu
