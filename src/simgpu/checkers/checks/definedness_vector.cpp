// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How bytes that hold nothing travel through vector and matrix instructions.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "simgpu/checkers/checks/definedness.h"
#include "simgpu/machine/matrix/layout.h"
#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/matrix/wmma.h"

namespace wavejit::simgpu::checks {
namespace {

using vector::Kind;

// Which half-words of a source a kind reads for the lower and the upper part of the result: masks of bytes.
struct Parts {
  unsigned low = 15;
  unsigned high = 15;
};
Parts parts_of(const Instruction& instruction, Kind kind, unsigned index, bool explicit_source) {
  const bool select_low = explicit_source && ((instruction.op_sel >> index) & 1) != 0;
  const bool select_high = !explicit_source || ((instruction.op_sel_hi >> index) & 1) != 0;
  switch (kind) {
    case Kind::f16:
    case Kind::bf16:
    case Kind::b16: {
      const unsigned half = select_low ? 12 : 3;
      return {half, half};
    }
    case Kind::pk_b16:
    case Kind::pk_f16:
    case Kind::pk_bf16:
      return {select_low ? 12u : 3u, select_high ? 12u : 3u};
    case Kind::mixed: {
      if (!select_high || !explicit_source) return {};
      const unsigned half = select_low ? 12 : 3;
      return {half, half};
    }
    default:
      return {};
  }
}

unsigned selected_bytes(SubDword select) {
  switch (select) {
    case SubDword::byte0:
    case SubDword::byte1:
    case SubDword::byte2:
    case SubDword::byte3:
      return 1u << static_cast<unsigned>(select);
    case SubDword::word0:
      return 3;
    case SubDword::word1:
      return 12;
    case SubDword::dword:
      break;
  }
  return 15;
}

bool has_wide_result(const Effects& effects) {
  return effects.bound != nullptr && vector::dwords_of(effects.bound->operation->result) == 2;
}

}  // namespace

// Runs the instruction once more on registers that hold ones where nothing is known and zeros elsewhere. False: it is
// none that moves bytes, or what steers it is not known.
bool Definedness::follow_move(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Record& record = *instruction.record;
  if (record.flow != Flow::move && record.flow != Flow::copy) return false;
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Operand& operand = instruction.source[i];
    // Lanes that are off steer nothing.
    const std::uint64_t matter = operand.is_vector() ? wave.exec() : wave.all_lanes;
    if (((record.steering >> i) & 1) != 0 && (undefined_lanes(operand) & matter) != 0) return false;
    // A register that steers and is moved cannot be replaced by its shadow.
    for (unsigned j = 0; j < instruction.source_count; ++j) {
      if (i != j && ((record.steering >> i) & 1) != 0 && operand.is_vector() && instruction.source[j].is_vector() &&
          instruction.source[j].index == operand.index) {
        return false;
      }
    }
  }
  const Source source = source_of(effects);
  Instruction shadow = instruction;
  struct Saved {
    unsigned index;
    std::array<std::uint32_t, lane_places> lanes;
  };
  std::array<Saved, 12> saved;
  unsigned count = 0;
  const auto save = [&](unsigned index, bool replace) {
    for (unsigned i = 0; i < count; ++i) {
      if (saved[i].index == index) return;
    }
    if (count == saved.size()) return;
    Saved& place = saved[count++];
    place.index = index;
    std::memcpy(place.lanes.data(), wave.vgpr[index], sizeof(place.lanes));
    if (!replace) return;
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      std::uint32_t value = 0;
      for (unsigned byte = 0; byte < 4; ++byte) {
        if (((vectors_[index][byte] >> lane) & 1) != 0) value |= 0xffu << (8 * byte);
      }
      wave.vgpr[index][lane] = value;
    }
  };
  std::array<std::uint32_t, sgpr_count> scalars_then;
  std::memcpy(scalars_then.data(), wave.sgpr, sizeof(wave.sgpr));
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Operand& operand = instruction.source[i];
    if (((record.steering >> i) & 1) != 0) continue;
    if (operand.is_vector()) {
      for (unsigned j = 0; j < operand.dwords; ++j) save(operand.index + j, true);
    } else if (operand.is_scalar() && operand.index + unsigned{operand.dwords} <= sgpr_m0) {
      for (unsigned j = 0; j < operand.dwords; ++j) wave.sgpr[operand.index + j] = scalars_[operand.index + j];
    } else if (operand.is_constant()) {
      shadow.source[i].bits = 0;
      shadow.source[i].lanes = broadcast_constant(0);
      if (operand.dwords == 2 || has_wide_result(effects)) return false;
    }
  }
  for (unsigned i = 0; i < effects.write_count; ++i) {
    for (unsigned j = 0; j < effects.writes[i].count; ++j) save(effects.writes[i].first + j, true);
  }
  const std::uint32_t mode = wave.mode;
  shadow.execute(wave, shadow);
  wave.mode = mode;
  std::memcpy(wave.sgpr, scalars_then.data(), sizeof(wave.sgpr));
  for (unsigned i = 0; i < effects.write_count; ++i) {
    for (unsigned j = 0; j < effects.writes[i].count; ++j) {
      const unsigned index = effects.writes[i].first + j;
      Planes planes{};
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        for (unsigned byte = 0; byte < 4; ++byte) {
          if (((wave.vgpr[index][lane] >> (8 * byte)) & 0xff) != 0) planes[byte] |= std::uint64_t{1} << lane;
        }
      }
      set(index, planes, every_place, source);
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    std::memcpy(wave.vgpr[saved[i].index], saved[i].lanes.data(), sizeof(saved[i].lanes));
  }
  return true;
}

// v_cndmask: a lane takes one of two, and its bit says which.
void Definedness::follow_select(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Source source = source_of(effects);
  const std::uint64_t mask = wave.mask(instruction.source[2]);
  const std::uint64_t unknown = undefined_bits(instruction.source[2]);
  Planes planes{};
  for (unsigned byte = 0; byte < 4; ++byte) {
    const auto lanes = [&](const Operand& operand) {
      if (operand.is_vector()) return vectors_[operand.index][byte];
      return undefined_lanes(operand);
    };
    planes[byte] = (lanes(instruction.source[0]) & ~mask) | (lanes(instruction.source[1]) & mask) | unknown;
  }
  set(effects.writes[0].first, planes, wave.exec(), source);
}

// Bit by bit: each byte of the result depends on the same byte of each source. If a 16-bit instruction writes one half
// of a register, the other half keeps its state, even if it holds nothing.
void Definedness::follow_bits(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Source source = source_of(effects);
  Planes planes{};
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Operand& operand = instruction.source[i];
    for (unsigned byte = 0; byte < planes.size(); ++byte) {
      planes[byte] |= operand.is_vector() ? vectors_[operand.index][byte] : undefined_lanes(operand);
    }
  }
  set(effects.writes[0].first, planes, wave.exec(), source);
}

// v_bfi_b32 with a mask that all lanes share: each bit comes from one of two, as elements are put into a vector of
// halves.
bool Definedness::follow_insertion(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Operand& mask = instruction.source[0];
  if (mask.is_vector() || undefined_bits(mask) != 0) return false;
  const Source source = source_of(effects);
  const std::uint32_t bits = wave.scalar(mask);
  const auto lanes = [&](const Operand& operand, unsigned byte) {
    return operand.is_vector() ? vectors_[operand.index][byte] : undefined_lanes(operand);
  };
  Planes planes{};
  for (unsigned byte = 0; byte < 4; ++byte) {
    const std::uint32_t chosen = (bits >> (8 * byte)) & 0xff;
    if (chosen != 0) planes[byte] |= lanes(instruction.source[1], byte);
    if (chosen != 0xff) planes[byte] |= lanes(instruction.source[2], byte);
  }
  set(effects.writes[0].first, planes, wave.exec(), source);
  return true;
}

void Definedness::follow_vector(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Flow flow = instruction.record->flow;
  const Source source = source_of(effects);
  if (effects.action == Action::read_first_lane || effects.action == Action::read_lane) {
    const std::uint64_t exec = wave.exec();
    unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(std::countr_zero(exec));
    if (effects.action == Action::read_lane) lane = wave.scalar(instruction.source[1]) & (wave.lane_count - 1);
    const Operand& operand = instruction.source[0];
    std::uint32_t bits = 0;
    for (unsigned byte = 0; operand.is_vector() && byte < 4; ++byte) {
      if (((vectors_[operand.index][byte] >> lane) & 1) != 0) bits |= 0xffu << (8 * byte);
    }
    if (operand.is_scalar()) bits = static_cast<std::uint32_t>(undefined_bits(operand));
    if (const auto spilled = spilled_bits_.find((std::uint32_t{operand.index} * lane_places) + lane);
        operand.is_vector() && bits == ~0U && spilled != spilled_bits_.end()) {
      bits = spilled->second;
    }
    if (instruction.destination[0].index < sgpr_count) set_scalar(instruction.destination[0].index, bits, source);
    return;
  }
  if (effects.action == Action::write_lane) {
    const unsigned lane = wave.scalar(instruction.source[1]) & (wave.lane_count - 1);
    const std::uint64_t there = std::uint64_t{1} << lane;
    const auto bits = static_cast<std::uint32_t>(undefined_bits(instruction.source[0]));
    const std::uint64_t undefined = bits != 0 ? there : 0;
    const std::uint32_t key = (std::uint32_t{effects.writes[0].first} * lane_places) + lane;
    if (bits != 0 && bits != ~0U) {
      spilled_bits_[key] = bits;
    } else {
      spilled_bits_.erase(key);
    }
    return set(effects.writes[0].first, {undefined, undefined, undefined, undefined}, there, source);
  }
  if (flow == Flow::select && instruction.encoding != Encoding::sdwa && instruction.encoding != Encoding::dpp &&
      instruction.source_count == 3) {
    return follow_select(wave, instruction, effects);
  }
  if (flow == Flow::bits_xor && instruction.encoding != Encoding::sdwa && instruction.encoding != Encoding::dpp) {
    return follow_bits(wave, instruction, effects);
  }
  if (flow == Flow::insert && follow_insertion(wave, instruction, effects)) return;
  if (follow_move(wave, instruction, effects)) return;

  // Arithmetic: a lane with anything undefined among what it reads gives nothing.
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t written = wave.exec();
  // Two dwords of which not everything comes from everything. Sums of 64 bits carry upwards only; each half of a packed
  // pair of floats reads the dword that op_sel and op_sel_hi name.
  const bool carries_upwards = flow == Flow::sum;
  const bool is_pair = instruction.record->kind == IssueKind::packed;
  std::array<std::uint64_t, 2> of_dword{};
  const auto dword_read_for = [&](unsigned source, unsigned result, const Operand& operand) {
    if (!is_pair) return 0U;
    const unsigned select = result == 0 ? instruction.op_sel : instruction.op_sel_hi;
    return std::min<unsigned>((select >> source) & 1, operand.dwords - 1U);
  };
  const vector::Bound* bound = effects.bound;
  const unsigned sources = bound == nullptr ? instruction.source_count : bound->operation->source_count;
  const auto constant_byte = [&](const Operand& operand, unsigned byte) { return (operand.bits >> (8 * byte)) & 0xff; };
  for (unsigned i = 0; i < sources; ++i) {
    const bool explicit_source = i < instruction.source_count;
    const Operand& operand = explicit_source ? instruction.source[i] : instruction.destination[0];
    const Kind kind = bound == nullptr ? Kind::b32 : bound->operation->source[i];
    if (kind == Kind::mask) {
      const std::uint64_t lanes = explicit_source ? undefined_bits(operand)
                                                  : scalars_[sgpr_vcc] | (std::uint64_t{scalars_[sgpr_vcc + 1]} << 32);
      low |= lanes;
      high |= lanes;
      for (std::uint64_t& of : of_dword) of |= lanes;
      continue;
    }
    if (!operand.is_vector()) {
      const std::uint64_t lanes = undefined_lanes(operand);
      if (flow != Flow::pack || i == 0) low |= lanes;
      if (flow != Flow::pack || i != 0) high |= lanes;
      for (unsigned result = 0; result < of_dword.size(); ++result) {
        Operand dword = operand;
        const bool reads_one = is_pair || (carries_upwards && result == 0);
        if (reads_one && operand.is_scalar() && operand.dwords == 2) {
          dword.index += dword_read_for(i, result, operand);
          dword.dwords = 1;
        }
        of_dword[result] |= undefined_lanes(dword);
      }
      continue;
    }
    Parts parts = parts_of(instruction, kind, i, explicit_source);
    if (instruction.encoding == Encoding::sdwa && explicit_source && operand.select != SubDword::dword) {
      parts.low = parts.high = selected_bytes(operand.select);
    }
    // What a constant masks away does not matter.
    if (flow == Flow::mask && instruction.source_count == 2) {
      const Operand& other = instruction.source[1 - i];
      if (other.is_constant()) {
        for (unsigned byte = 0; byte < 4; ++byte) {
          if (constant_byte(other, byte) == 0) parts.low = parts.high = parts.low & ~(1u << byte);
        }
      }
    }
    if (flow == Flow::field && i == 0 && instruction.source[1].is_constant() && instruction.source[2].is_constant()) {
      const unsigned first = instruction.source[1].bits & 31;
      const unsigned count = instruction.source[2].bits & 31;
      for (unsigned byte = 0; byte < 4; ++byte) {
        if (8 * byte >= first + count || 8 * (byte + 1) <= first) parts.low = parts.high = parts.low & ~(1u << byte);
      }
    }
    for (unsigned result = 0; result < of_dword.size(); ++result) {
      const Planes& dword = vectors_[operand.index + dword_read_for(i, result, operand)];
      of_dword[result] |= dword[0] | dword[1] | dword[2] | dword[3];
    }
    std::uint64_t reads_low = 0;
    std::uint64_t reads_high = 0;
    for (unsigned dword = 0; dword < operand.dwords; ++dword) {
      for (unsigned byte = 0; byte < 4; ++byte) {
        if (((parts.low >> byte) & 1) != 0) reads_low |= vectors_[operand.index + dword][byte];
        if (((parts.high >> byte) & 1) != 0) reads_high |= vectors_[operand.index + dword][byte];
      }
    }
    if (instruction.encoding == Encoding::dpp && i == 0 && (reads_low | reads_high) != 0) {
      const vector::DppLanes moved = vector::dpp_lanes(wave, instruction, reads_low);
      written &= ~moved.unwritten;
      reads_low = moved.carried;
      reads_high = vector::dpp_lanes(wave, instruction, reads_high).carried;
    }
    // Packing conversions give each source half of the result.
    if (flow == Flow::pack) {
      if (i == 0) {
        low |= reads_low;
      } else {
        high |= reads_high;
      }
    } else {
      low |= reads_low;
      high |= reads_high;
    }
  }
  const bool packs =
      bound != nullptr && (bound->operation->result == Kind::pk_f16 || bound->operation->result == Kind::pk_b16 ||
                           bound->operation->result == Kind::pk_bf16 || flow == Flow::pack);
  if (!packs) low = high = low | high;
  for (unsigned i = 0; i < effects.write_count; ++i) {
    const Registers& range = effects.writes[i];
    if (range.scalar) continue;
    for (unsigned j = 0; j < range.count; ++j) {
      Planes planes{low, low, high, high};
      if ((carries_upwards && j == 0) || (is_pair && j < of_dword.size())) planes.fill(of_dword[j]);
      if (bound != nullptr && (bound->operation->result == Kind::f16 || bound->operation->result == Kind::b16 ||
                               bound->operation->result == Kind::bf16)) {
        const bool keeps = (bound->flags & vector::flag_keeps_high_half) != 0;
        const bool upper = (bound->flags & vector::flag_high_half) != 0 || (keeps && (instruction.op_sel & 8) != 0);
        const Planes& old = vectors_[range.first + j];
        if (upper) {
          planes = {old[0], old[1], low, low};
        } else if (keeps) {
          planes = {low, low, old[2], old[3]};
        } else {
          planes = {low, low, 0, 0};
        }
      }
      set(range.first + j, planes, written, source);
    }
  }
  const std::uint64_t mask = (low | high) & wave.exec();
  for (unsigned i = 0; i < instruction.destination_count; ++i) {
    if (instruction.destination[i].is_scalar()) write_mask(wave, instruction, instruction.destination[i], mask, source);
  }
  if (bound != nullptr && (bound->flags & vector::flag_writes_exec) != 0) {
    if (mask != 0) set_scalar(sgpr_exec, 1, source);
    check_exec(wave, instruction, source);
  }
}

// As follow_matrix, of RDNA4's layout. Registers of 16-bit results hold two rows.
void Definedness::follow_wmma(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Source source = source_of(effects);
  const std::uint64_t a = undefined_lanes(instruction.source[0]) & wave.all_lanes;
  const std::uint64_t b = undefined_lanes(instruction.source[1]) & wave.all_lanes;
  const Operand& c = instruction.source[2];
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  for (unsigned lane = 0; lane < wave.lane_count; ++lane) {
    rows |= ((a >> lane) & 1) << (lane % matrix::wmma_size);
    columns |= ((b >> lane) & 1) << (lane % matrix::wmma_size);
  }
  const Registers& range = effects.writes[0];
  const unsigned rows_of_register = matrix::wmma_size * matrix::wmma_size / wave.lane_count / range.count;
  std::array<std::uint64_t, 8> before{};
  for (unsigned r = 0; r < range.count && c.is_vector(); ++r) {
    const Planes& planes = vectors_[c.index + r];
    before[r] = planes[0] | planes[1] | planes[2] | planes[3];
  }
  for (unsigned r = 0; r < range.count; ++r) {
    std::uint64_t lanes = before[r];
    for (unsigned lane = 0; lane < wave.lane_count; ++lane) {
      bool spoilt = ((columns >> (lane % matrix::wmma_size)) & 1) != 0;
      for (unsigned part = 0; part < rows_of_register; ++part) {
        const matrix::WmmaPlace place = matrix::wmma_place(lane, wave.lane_count, (r * rows_of_register) + part);
        spoilt = spoilt || ((rows >> place.row) & 1) != 0;
      }
      lanes |= std::uint64_t{spoilt} << lane;
    }
    set(range.first + r, {lanes, lanes, lanes, lanes}, wave.all_lanes, source);
  }
}

// A row of A spoils a row of the result, a column of B a column; C spoils its own place.
void Definedness::follow_matrix(Wave& wave, const Instruction& instruction, const Effects& effects) {
  if (instruction.record->split_counters) return follow_wmma(wave, instruction, effects);
  const Source source = source_of(effects);
  const std::uint64_t a = undefined_lanes(instruction.source[0]);
  const std::uint64_t b = undefined_lanes(instruction.source[1]);
  const Operand& c = instruction.source[2];
  const matrix::Shape& shape = *instruction.record->shape;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    if (((a >> lane) & 1) != 0) rows |= std::uint64_t{1} << (lane % shape.m);
    if (((b >> lane) & 1) != 0) columns |= std::uint64_t{1} << (lane % shape.m);
  }
  // Scales and blocks that are broadcast are not told apart.
  bool everything = shape.blocks > 1 && (a | b) != 0;
  for (unsigned i = 3; i < instruction.source_count; ++i) everything |= undefined_lanes(instruction.source[i]) != 0;
  const Registers& range = effects.writes[0];
  const bool is_f64 = shape.a == matrix::Element::f64;
  // C first: the destination may be C.
  std::array<Planes, 32> before;
  for (unsigned r = 0; r < range.count && r < before.size(); ++r) {
    before[r] = c.is_vector() && r < c.dwords ? vectors_[c.index + r] : Planes{};
  }
  for (unsigned r = 0; r < range.count && r < before.size(); ++r) {
    std::uint64_t lanes = everything ? every_place : 0;
    for (unsigned lane = 0; lane < lane_places && !everything; ++lane) {
      const matrix::ResultPlace place = matrix::result_place(shape, lane, is_f64 ? r / 2 : r);
      const bool spoilt = ((rows >> place.row) & 1) != 0 || ((columns >> place.column) & 1) != 0;
      lanes |= std::uint64_t{spoilt} << lane;
    }
    const std::uint64_t old = before[r][0] | before[r][1] | before[r][2] | before[r][3];
    lanes |= old;
    set(range.first + r, {lanes, lanes, lanes, lanes}, every_place, source);
  }
  static_cast<void>(wave);
}

}  // namespace wavejit::simgpu::checks
