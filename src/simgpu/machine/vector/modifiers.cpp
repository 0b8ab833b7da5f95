// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DPP, SDWA, op_sel, neg and abs on sources; denormals, omod and clamp on results (CDNA3 ISA, chapters on VOP3, SDWA,
// DPP).
#include "simgpu/machine/numerics/bits.h"
#include "simgpu/machine/numerics/small_floats.h"
#include "simgpu/machine/vector/execute.h"

namespace wavejit::simgpu::vector {
namespace {

using namespace numerics;

// The lane that DPP reads for `lane` in a wave of `lanes`; -1 if there is none.
int dpp_source(unsigned control, int lane, int lanes) {
  const int row = lane & ~15;
  const int in_row = lane & 15;
  const int count = static_cast<int>(control & 15);
  if (control < dpp_row_shl) return (lane & ~3) | static_cast<int>((control >> (2 * (lane & 3))) & 3);
  if (control > dpp_row_shl && control < dpp_row_shr) return in_row + count < 16 ? lane + count : -1;
  if (control > dpp_row_shr && control < dpp_row_ror) return in_row >= count ? lane - count : -1;
  if (control > dpp_row_ror && control < dpp_wave_shl) return row | ((in_row - count) & 15);
  if (control >= dpp_row_xmask) return lane ^ count;
  if (control >= dpp_row_newbcast) return row | count;
  switch (control) {
    case dpp_wave_shl:
      return lane < lanes - 1 ? lane + 1 : -1;
    case dpp_wave_rol:
      return (lane + 1) % lanes;
    case dpp_wave_shr:
      return lane > 0 ? lane - 1 : -1;
    case dpp_wave_ror:
      return (lane + lanes - 1) % lanes;
    case dpp_row_mirror:
      return row | (15 - in_row);
    case dpp_row_half_mirror:
      return (lane & ~7) | (7 - (lane & 7));
    // The last lane of each row goes to the whole next row; of the first half, to the second half.
    case dpp_row_bcast15:
      return lane >= 16 ? row - 1 : -1;
    case dpp_row_bcast31:
      return lane >= 32 ? 31 : -1;
    default:
      return -1;
  }
}

// All values of DPP_CTRL, worked out once for waves of each size.
struct DppTable {
  static constexpr unsigned controls = dpp_row_xmask + 16;
  std::uint8_t from[controls][lane_places];
  std::uint64_t absent[controls];  // lanes without a source

  explicit DppTable(unsigned lanes) : from{}, absent{} {
    for (unsigned control = 0; control < controls; ++control) {
      for (unsigned lane = 0; lane < lanes; ++lane) {
        const int source = dpp_source(control, static_cast<int>(lane), static_cast<int>(lanes));
        from[control][lane] = static_cast<std::uint8_t>(source < 0 ? 0 : source);
        if (source < 0) absent[control] |= std::uint64_t{1} << lane;
      }
    }
  }
};

// dpp8: three bits for each lane of eight.
struct EightLanes {
  std::uint8_t from[lane_places];
  explicit EightLanes(std::uint32_t lanes_read) {
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      from[lane] = static_cast<std::uint8_t>((lane & ~7u) | ((lanes_read >> (3 * (lane & 7))) & 7));
    }
  }
};

// The lanes of the rows and banks (four lanes of a row) that the masks enable.
std::uint64_t enabled_lanes(unsigned row_mask, unsigned bank_mask) {
  std::uint64_t banks = 0;
  for (unsigned bank = 0; bank < 4; ++bank)
    banks |= ((bank_mask >> bank) & 1) != 0 ? std::uint64_t{0xf} << (4 * bank) : 0;
  std::uint64_t lanes = 0;
  for (unsigned row = 0; row < 4; ++row) lanes |= ((row_mask >> row) & 1) != 0 ? banks << (16 * row) : 0;
  return lanes;
}

// Applies DPP to `dwords` registers at `words`. Lanes in disabled rows and banks, and lanes whose source is missing or
// inactive without bound_ctrl, are not written.
void apply_dpp(const Wave& wave, const Instruction& instruction, std::uint32_t* words, unsigned dwords,
               std::uint64_t& unwritten) {
  static const DppTable of_64(lane_places);
  static const DppTable of_32(lane_places / 2);
  const DppTable& table = wave.lane_count == lane_places ? of_64 : of_32;
  const bool by_eight = instruction.dpp_control == dpp_eight;
  const unsigned control = instruction.dpp_control < DppTable::controls ? instruction.dpp_control : 0u;
  const EightLanes eight(instruction.immediate);
  const std::uint8_t* from = by_eight ? eight.from : table.from[control];
  const std::uint64_t exec = wave.exec();
  std::uint64_t missing = by_eight ? 0 : table.absent[control];
  if (exec != wave.all_lanes && !instruction.fetches_inactive) {
    for (unsigned lane = 0; lane < lane_places; ++lane) missing |= (~(exec >> from[lane]) & 1) << lane;
  }
  unwritten |= ~enabled_lanes(instruction.row_mask, instruction.bank_mask);
  if (!instruction.bound_ctrl) unwritten |= missing;
  for (unsigned word = 0; word < dwords; ++word) {
    std::uint32_t old[lane_places];
    std::uint32_t* block = words + word * lane_places;
    __builtin_memcpy(old, block, sizeof(old));
    for (unsigned lane = 0; lane < lane_places; ++lane) block[lane] = old[from[lane]];
    if (missing == 0) continue;
    for (unsigned lane = 0; lane < lane_places; ++lane) block[lane] = ((missing >> lane) & 1) != 0 ? 0u : block[lane];
  }
}

std::uint32_t selected(std::uint32_t word, SubDword select, bool sign_extend) {
  switch (select) {
    case SubDword::byte0:
    case SubDword::byte1:
    case SubDword::byte2:
    case SubDword::byte3: {
      const std::uint32_t byte = (word >> (8 * static_cast<unsigned>(select))) & 0xffu;
      return sign_extend ? static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<std::int8_t>(byte))) : byte;
    }
    case SubDword::word0:
    case SubDword::word1: {
      const std::uint32_t half = select == SubDword::word0 ? word & 0xffffu : word >> 16;
      return sign_extend ? static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<std::int16_t>(half)))
                         : half;
    }
    case SubDword::dword:
      break;
  }
  return word;
}

template <typename Body>
void each_lane(std::uint32_t* words, Body&& body) {
  for (unsigned lane = 0; lane < lane_places; ++lane) words[lane] = body(words[lane]);
}

void flush_f32(std::uint32_t* words) {
  each_lane(words, [](std::uint32_t w) { return (w & 0x7f800000u) == 0 ? w & 0x80000000u : w; });
}

}  // namespace

DppLanes dpp_lanes(const Wave& wave, const Instruction& instruction, std::uint64_t marked) {
  DppLanes lanes;
  std::uint32_t words[lane_places];
  for (unsigned lane = 0; lane < lane_places; ++lane) words[lane] = static_cast<std::uint32_t>((marked >> lane) & 1);
  apply_dpp(wave, instruction, words, 1, lanes.unwritten);
  for (unsigned lane = 0; lane < lane_places; ++lane) lanes.carried |= std::uint64_t{words[lane]} << lane;
  return lanes;
}

void fetch_modified(const Wave& wave, const Instruction& instruction, const Operation& operation, unsigned index,
                    const Operand& operand, LaneBlock& block, std::uint64_t& unwritten) {
  const Kind kind = operation.source[index];
  const unsigned dwords = dwords_of(kind) == 2 ? 2 : 1;
  std::uint32_t* low = block.words;
  std::uint32_t* high = block.words + lane_places;
  if (operand.is_vector()) {
    __builtin_memcpy(low, wave.vgpr[operand.index], dwords * sizeof(std::uint32_t) * lane_places);
  } else if (operand.lanes != nullptr) {
    __builtin_memcpy(low, operand.lanes, dwords * sizeof(std::uint32_t) * lane_places);
  } else {
    const std::uint64_t value = dwords == 2 ? wave.scalar64(operand) : wave.scalar(operand);
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      low[lane] = static_cast<std::uint32_t>(value);
      if (dwords == 2) high[lane] = static_cast<std::uint32_t>(value >> 32);
    }
  }
  const bool explicit_source = index < instruction.source_count;
  if (instruction.encoding == Encoding::dpp && index == 0) apply_dpp(wave, instruction, low, dwords, unwritten);
  if (instruction.encoding == Encoding::sdwa && explicit_source) {
    if (operand.select != SubDword::dword) {
      each_lane(low, [&](std::uint32_t w) { return selected(w, operand.select, operand.sign_extend); });
    } else if (operand.sign_extend && kind == Kind::b16) {
      each_lane(low, [&](std::uint32_t w) { return selected(w, SubDword::word0, true); });
    }
  }
  const bool select_low = ((instruction.op_sel >> index) & 1) != 0;
  const bool select_high = ((instruction.op_sel_hi >> index) & 1) != 0;
  const bool negate_low = ((instruction.neg_lo >> index) & 1) != 0;
  const bool negate_high = ((instruction.neg_hi >> index) & 1) != 0;
  const bool use_op_sel = explicit_source && (operation.flags & flag_kernel_op_sel) == 0;
  switch (kind) {
    case Kind::f16:
    case Kind::bf16:
    case Kind::b16:
      if (use_op_sel && select_low) each_lane(low, [](std::uint32_t w) { return w >> 16; });
      if (kind != Kind::b16) {
        if (operand.absolute) each_lane(low, [](std::uint32_t w) { return w & 0x7fffu; });
        if (operand.negate) each_lane(low, [](std::uint32_t w) { return w ^ 0x8000u; });
      }
      break;
    case Kind::pk_b16:
    case Kind::pk_f16:
    case Kind::pk_bf16:
      if (use_op_sel) {
        const std::uint32_t flip =
            kind == Kind::pk_b16 ? 0u : (negate_low ? 0x8000u : 0u) | (negate_high ? 0x80000000u : 0u);
        each_lane(low, [&](std::uint32_t w) {
          const std::uint32_t lo = select_low ? w >> 16 : w & 0xffffu;
          const std::uint32_t hi = select_high ? w >> 16 : w & 0xffffu;
          return (lo | (hi << 16)) ^ flip;
        });
      }
      break;
    case Kind::pk_f32:
      if (use_op_sel) {
        std::uint32_t first[lane_places];
        std::uint32_t second[lane_places];
        __builtin_memcpy(first, select_low ? high : low, sizeof(first));
        __builtin_memcpy(second, select_high ? high : low, sizeof(second));
        const std::uint32_t flip_low = negate_low ? 0x80000000u : 0u;
        const std::uint32_t flip_high = negate_high ? 0x80000000u : 0u;
        for (unsigned lane = 0; lane < lane_places; ++lane) low[lane] = first[lane] ^ flip_low;
        for (unsigned lane = 0; lane < lane_places; ++lane) high[lane] = second[lane] ^ flip_high;
      }
      break;
    case Kind::mixed:
      if (select_high) {
        each_lane(low, [&](std::uint32_t w) {
          const std::uint32_t half = select_low ? w >> 16 : w & 0xffffu;
          return bits_of(f16_to_f32(wave.denormal_f16_f64() & 1 ? half : flushed_f16(half)));
        });
      }
      [[fallthrough]];
    case Kind::f32:
      if (operand.absolute || (kind == Kind::mixed && negate_high)) {
        each_lane(low, [](std::uint32_t w) { return w & 0x7fffffffu; });
      }
      if (operand.negate != negate_low) each_lane(low, [](std::uint32_t w) { return w ^ 0x80000000u; });
      break;
    case Kind::b32:
      // v_cndmask takes floats as well as bits.
      if (operand.absolute) each_lane(low, [](std::uint32_t w) { return w & 0x7fffffffu; });
      if (operand.negate) each_lane(low, [](std::uint32_t w) { return w ^ 0x80000000u; });
      break;
    case Kind::f64:
      if (operand.absolute) each_lane(high, [](std::uint32_t w) { return w & 0x7fffffffu; });
      if (operand.negate) each_lane(high, [](std::uint32_t w) { return w ^ 0x80000000u; });
      break;
    default:
      break;
  }
  if ((operation.flags & flag_moves_bits) != 0) return;
  const bool keeps_f32 = (wave.denormal_f32() & 1) != 0;
  const bool keeps_others = (wave.denormal_f16_f64() & 1) != 0;
  if ((kind == Kind::f32 || kind == Kind::mixed || kind == Kind::pk_f32) && !keeps_f32) {
    flush_f32(low);
    if (kind == Kind::pk_f32) flush_f32(high);
  }
  if (keeps_others) return;
  if (kind == Kind::f16) each_lane(low, [](std::uint32_t w) { return flushed_f16(w & 0xffffu); });
  if (kind == Kind::pk_f16) {
    each_lane(low, [](std::uint32_t w) { return flushed_f16(w & 0xffffu) | (flushed_f16(w >> 16) << 16); });
  }
  if (kind == Kind::f64) {
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      if ((high[lane] & 0x7ff00000u) != 0) continue;
      low[lane] = 0;
      high[lane] &= 0x80000000u;
    }
  }
}

namespace {

template <typename Float>
Float finished(Float value, OutputModifier modifier, bool clamp, bool nan_to_zero) {
  switch (modifier) {
    case OutputModifier::multiply2:
      value = value * Float{2};
      break;
    case OutputModifier::multiply4:
      value = value * Float{4};
      break;
    case OutputModifier::divide2:
      value = value * Float{0.5};
      break;
    case OutputModifier::none:
      break;
  }
  // omod flushes, and turns -0 into +0 (CDNA3 ISA, "Output modifiers").
  if (modifier != OutputModifier::none) {
    value = flushed(value);
    if (value == Float{0}) value = Float{0};
  }
  if (clamp) {
    if (is_nan(value)) return nan_to_zero ? Float{0} : value;
    value = value > Float{0} ? (value < Float{1} ? value : Float{1}) : Float{0};
  }
  return value;
}

std::uint32_t finished_f16(std::uint32_t half, OutputModifier modifier, bool clamp, bool nan_to_zero) {
  return f32_to_f16(finished(f16_to_f32(half & 0xffffu), modifier, clamp, nan_to_zero));
}

}  // namespace

void finish_result(const Wave& wave, const Instruction& instruction, const Operation& operation,
                   std::uint32_t* result) {
  const Kind kind = operation.result;
  const bool is_f32 = kind == Kind::f32 || kind == Kind::pk_f32;
  const bool is_f16 = kind == Kind::f16 || kind == Kind::pk_f16;
  if (!is_f32 && !is_f16 && kind != Kind::f64) return;
  const bool moves = (operation.flags & flag_moves_bits) != 0;
  const unsigned keeps = is_f32 ? wave.denormal_f32() : wave.denormal_f16_f64();
  const bool flush = (keeps & 2) == 0 && !moves;
  // Ignored while output denormals are kept or in IEEE mode (CDNA3 ISA, "Output modifiers").
  const OutputModifier modifier = flush && !wave.ieee() ? instruction.output_modifier : OutputModifier::none;
  const bool clamp = instruction.clamp;
  if (!flush && !clamp) return;
  const bool nan_to_zero = wave.dx10_clamp();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    std::uint32_t& low = result[lane];
    std::uint32_t& high = result[lane + lane_places];
    if (is_f32) {
      const float value = float_of(low);
      low = bits_of(finished(flush ? flushed(value) : value, modifier, clamp, nan_to_zero));
      if (kind == Kind::pk_f32) {
        const float second = float_of(high);
        high = bits_of(finished(flush ? flushed(second) : second, modifier, clamp, nan_to_zero));
      }
    } else if (is_f16) {
      const std::uint32_t first = flush ? flushed_f16(low & 0xffffu) : low & 0xffffu;
      std::uint32_t word = finished_f16(first, modifier, clamp, nan_to_zero);
      if (kind == Kind::pk_f16) {
        const std::uint32_t second = flush ? flushed_f16(low >> 16) : low >> 16;
        word |= finished_f16(second, modifier, clamp, nan_to_zero) << 16;
      }
      low = word;
    } else {
      const double value = double_of(low | (static_cast<std::uint64_t>(high) << 32));
      const std::uint64_t bits = bits_of(finished(flush ? flushed(value) : value, modifier, clamp, nan_to_zero));
      low = static_cast<std::uint32_t>(bits);
      high = static_cast<std::uint32_t>(bits >> 32);
    }
  }
}

void merge_partial(const Instruction& instruction, const Operation& operation, unsigned flags, const std::uint32_t* old,
                   std::uint32_t* result) {
  if (instruction.encoding == Encoding::sdwa && instruction.destination_select != SubDword::dword &&
      dwords_of(operation.result) == 1) {
    const SubDword select = instruction.destination_select;
    const bool is_byte = select <= SubDword::byte3;
    const unsigned shift = is_byte ? 8 * static_cast<unsigned>(select) : (select == SubDword::word1 ? 16 : 0);
    const std::uint32_t field = is_byte ? 0xffu : 0xffffu;
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      const std::uint32_t value = (result[lane] & field) << shift;
      switch (instruction.destination_unused) {
        case UnusedBits::pad:
          result[lane] = value;
          break;
        case UnusedBits::sign_extend: {
          const bool negative = (result[lane] & (is_byte ? 0x80u : 0x8000u)) != 0;
          const std::uint32_t above = shift + (is_byte ? 8 : 16) >= 32 ? 0u : ~0u << (shift + (is_byte ? 8 : 16));
          result[lane] = value | (negative ? above : 0u);
          break;
        }
        case UnusedBits::preserve:
          result[lane] = (old[lane] & ~(field << shift)) | value;
          break;
      }
    }
    return;
  }
  if ((flags & flag_keeps_high_half) == 0 || instruction.encoding == Encoding::sdwa) return;
  const bool upper = (flags & flag_high_half) != 0 || (instruction.op_sel & 8) != 0;
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    result[lane] =
        upper ? (old[lane] & 0xffffu) | (result[lane] << 16) : (old[lane] & 0xffff0000u) | (result[lane] & 0xffffu);
  }
}

}  // namespace wavejit::simgpu::vector
