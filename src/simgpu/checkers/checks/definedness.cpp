// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/definedness.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <format>

#include "simgpu/machine/launch/finding.h"

namespace wavejit::simgpu::checks {
namespace {

std::uint64_t any_byte(const std::array<std::uint64_t, 4>& planes) {
  return planes[0] | planes[1] | planes[2] | planes[3];
}

}  // namespace

void Definedness::prepare(const Wave& wave, unsigned scalars) {
  vectors_.fill({every_place, every_place, every_place, every_place});
  vector_sources_.fill(nullptr);
  scalars_.fill(~0u);
  scalar_sources_.fill(nullptr);
  dirty_.fill();
  scc_undefined_ = true;
  scc_source_ = nullptr;
  spilled_bits_.clear();
  define({.first = 0, .count = 1, .scalar = false}, wave.exec());
  for (unsigned i = 0; i < sgpr_count; ++i) {
    // Given by the launch, or by the hardware: flat scratch, trap temporaries, EXEC.
    const bool given = i < scalars || i == sgpr_exec || i == sgpr_exec + 1 ||
                       (i >= sgpr_flat_scratch && i < sgpr_vcc) || (i >= sgpr_ttmp0 && i < sgpr_m0);
    if (given) set_scalar(i, 0, {});
  }
}

void Definedness::define(const Registers& range, std::uint64_t lanes) {
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) {
    std::uint64_t rest = 0;
    for (std::uint64_t& plane : vectors_[i]) rest |= plane &= ~lanes;
    if (rest == 0) dirty_.erase_vector(i);
  }
}

void Definedness::define_scalar(const Registers& range) {
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) set_scalar(i, 0, {});
}

void Definedness::set(unsigned vector, const Planes& planes, std::uint64_t lanes, Source source) {
  Planes& own = vectors_[vector];
  std::uint64_t rest = 0;
  for (unsigned i = 0; i < 4; ++i) {
    own[i] = (own[i] & ~lanes) | (planes[i] & lanes);
    rest |= own[i];
  }
  if (rest == 0) {
    dirty_.erase_vector(vector);
  } else {
    dirty_.insert_vector(vector);
    if ((any_byte(planes) & lanes) != 0) vector_sources_[vector] = source.instruction;
  }
}

void Definedness::set_scalar(unsigned scalar, std::uint32_t bits, Source source) {
  scalars_[scalar] = bits;
  if (bits == 0) {
    dirty_.erase_scalar(scalar);
  } else {
    dirty_.insert_scalar(scalar);
    scalar_sources_[scalar] = source.instruction;
  }
}

std::uint64_t Definedness::undefined_bits(const Operand& operand) const {
  if (!operand.is_scalar()) return 0;
  if (operand.index == source_scc) return scc_undefined_ ? ~std::uint64_t{0} : 0;
  if (operand.index >= sgpr_count) return 0;
  std::uint64_t bits = scalars_[operand.index];
  if (operand.dwords >= 2 && operand.index + 1 < sgpr_count) bits |= std::uint64_t{scalars_[operand.index + 1u]} << 32;
  return bits;
}

std::uint64_t Definedness::undefined_lanes(const Operand& operand) const {
  std::uint64_t lanes = 0;
  if (operand.is_vector()) {
    for (unsigned i = 0; i < operand.dwords; ++i) lanes |= any_byte(vectors_[operand.index + i]);
  } else if (operand.is_scalar()) {
    if (operand.index == source_scc) return scc_undefined_ ? every_place : 0;
    for (unsigned i = 0; i < operand.dwords && operand.index + i < sgpr_count; ++i) {
      if (scalars_[operand.index + i] != 0) return every_place;
    }
  }
  return lanes;
}

Definedness::Source Definedness::source_of(const Effects& effects) const {
  for (unsigned i = 0; i < effects.read_count; ++i) {
    const Registers& range = effects.reads[i];
    for (unsigned j = range.first; j < range.first + unsigned{range.count}; ++j) {
      if (range.scalar && dirty_.has_scalar(j)) return {scalar_sources_[j]};
      if (!range.scalar && dirty_.has_vector(j)) return {vector_sources_[j]};
    }
  }
  return {scc_source_};
}

void Definedness::complain(Wave& wave, const Instruction& instruction, int lane, std::string_view what, Source source) {
  if (!worth_reporting(wave, instruction, Check::uninitialised, source.instruction)) return;
  const std::string from = source.instruction == nullptr
                               ? std::string("a register that was never written")
                               : "memory that was never written, loaded by " + name_instruction(*source.instruction);
  report(wave, instruction, Check::uninitialised, lane, std::format("{} comes from {}", what, from),
         {.instruction = source.instruction, .wave = source.instruction == nullptr ? -1 : wave.index});
}

void Definedness::check_exec(Wave& wave, const Instruction& instruction, Source source) {
  constexpr Registers exec{.first = sgpr_exec, .count = 2, .scalar = true};
  if (!dirty_.any(exec)) return;
  complain(wave, instruction, -1, "EXEC", source);
  define_scalar(exec);
}

void Definedness::follow(Wave& wave, const Instruction& instruction, const Effects& effects) {
  switch (effects.action) {
    case Action::branch_scc:
      complain(wave, instruction, -1, "the condition of this branch", {scc_source_});
      scc_undefined_ = false;
      return;
    case Action::branch_vcc: {
      // One lane that certainly is set decides.
      const std::uint64_t undefined =
          (scalars_[sgpr_vcc] | (std::uint64_t{scalars_[sgpr_vcc + 1]} << 32)) & wave.all_lanes;
      if (undefined == 0) return;
      if ((wave.vcc() & ~undefined) != 0) return;
      complain(wave, instruction, std::countr_zero(undefined), "the condition of this branch", source_of(effects));
      return define_scalar(effects.reads[0]);
    }
    case Action::jump:
      complain(wave, instruction, -1, "the target of this jump", source_of(effects));
      return define_writes(wave, effects);
    case Action::matrix:
      return follow_matrix(wave, instruction, effects);
    default:
      break;
  }
  if (effects.action == Action::dual) return follow_pair(wave, instruction);
  if (effects.scalar_alu) return follow_scalar(wave, instruction, effects);
  if (effects.vector_alu) return follow_vector(wave, instruction, effects);
  define_writes(wave, effects);
}

// One after the other; the two halves of a pair that reads across itself are not told apart.
void Definedness::follow_pair(Wave& wave, const Instruction& instruction) {
  const Dual& dual = dual_of(instruction);
  for (const Instruction* part : {&dual.first, &dual.second}) {
    const Effects effects = describe(*part);
    if (reads_defined(effects)) {
      define_writes(wave, effects);
    } else {
      follow_vector(wave, *part, effects);
    }
  }
}

// Between s_set_gpr_idx_on and _off the registers of a vector instruction are M0[7:0] further on, each operand that
// M0[15:12] names. Moves carry their bytes along; of the rest, and of s_movrel, the result is taken as written.
void Definedness::follow_relative(const Wave& wave, const Instruction& instruction, const Effects& effects) {
  if (!effects.vector_alu || effects.write_count == 0 || effects.writes[0].scalar) return define_writes(wave, effects);
  if (instruction.record->split_counters) {
    // v_movrels and its kind: M0 itself, added to what the mnemonic says. Either place is taken as written.
    const unsigned further = effects.writes[0].first + wave.m0();
    if (further < vectors_.size()) set(further, {}, wave.exec(), {});
    return define_writes(wave, effects);
  }
  constexpr unsigned destination_bit = 15;
  constexpr unsigned source_bit = 12;
  const std::uint32_t m0 = wave.sgpr[sgpr_m0];
  const auto moved = [&](unsigned first, unsigned bit) { return first + (((m0 >> bit) & 1) != 0 ? m0 & 0xff : 0); };
  const unsigned destination = moved(effects.writes[0].first, destination_bit);
  if (destination + effects.writes[0].count > vectors_.size()) return;  // the instruction itself says so
  const Operand& source = instruction.source[0];
  if (instruction.record->flow == Flow::copy && source.is_vector()) {
    const unsigned from = moved(source.index, source_bit);
    if (from < vectors_.size()) set(destination, planes(from), wave.exec(), {vector_sources_[from]});
    return;
  }
  for (unsigned i = 0; i < effects.writes[0].count; ++i) set(destination + i, {}, wave.exec(), {});
}

void Definedness::follow_scalar(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const Source source = source_of(effects);
  const Flow flow = instruction.record->flow;
  const Operand& destination = instruction.destination[0];
  const bool wide = destination.dwords == 2;
  const std::uint64_t first = undefined_bits(instruction.source[0]);
  const std::uint64_t second = instruction.source_count > 1 ? undefined_bits(instruction.source[1]) : 0;
  const auto value = [&](unsigned i) { return wave.scalar64(instruction.source[i]); };
  if (instruction.record->changes_exec) {
    // The destination receives EXEC, which is defined. A lane that is off stays off whatever the mask says, or the
    // other way round: bits that EXEC decides need not be known.
    std::uint64_t unknown = first;
    if (flow == Flow::bits_and) unknown &= wave.exec();
    if (flow == Flow::bits_or || flow == Flow::bits_and_not) unknown &= ~wave.exec();
    define_writes(wave, effects);
    set_scalar(sgpr_exec, static_cast<std::uint32_t>(unknown), source);
    set_scalar(sgpr_exec + 1, static_cast<std::uint32_t>(unknown >> 32), source);
    return check_exec(wave, instruction, source);
  }
  std::uint64_t result = ~std::uint64_t{0};
  switch (flow) {
    case Flow::bits_copied:
      result = first;
      break;
    case Flow::bits_and:
      // A zero that is known decides.
      result = (first & second) | (first & value(1)) | (second & value(0));
      break;
    case Flow::bits_or:
      result = (first & second) | (first & ~value(1)) | (second & ~value(0));
      break;
    case Flow::bits_and_not:
      result = (first & second) | (first & ~value(1)) | (second & value(0));
      break;
    case Flow::bits_or_not:
      result = (first & second) | (first & value(1)) | (second & ~value(0));
      break;
    case Flow::bits_xor:
      result = first | second;
      break;
    case Flow::bits_chosen:
      if (!scc_undefined_) result = wave.scc != 0 ? first : second;
      break;
    default:
      break;
  }
  for (unsigned i = 0; i < effects.write_count; ++i) {
    const Registers& range = effects.writes[i];
    if (!range.scalar) continue;
    set_scalar(range.first, static_cast<std::uint32_t>(result), source);
    if (wide && range.count == 2) set_scalar(range.first + 1u, static_cast<std::uint32_t>(result >> 32), source);
  }
  if (effects.writes_scc) {
    scc_undefined_ = true;
    scc_source_ = source.instruction;
  }
  check_exec(wave, instruction, source);
}

void Definedness::write_mask(Wave& wave, const Instruction& instruction, const Operand& destination,
                             std::uint64_t undefined, Source source) {
  if (!destination.is_scalar() || destination.index + 1u >= sgpr_count) return;
  set_scalar(destination.index, static_cast<std::uint32_t>(undefined), source);
  if (destination.dwords == 1) return check_exec(wave, instruction, source);
  set_scalar(destination.index + 1u, static_cast<std::uint32_t>(undefined >> 32), source);
  check_exec(wave, instruction, source);
}

void Definedness::before_memory(Wave& wave, const Instruction& instruction, const Effects& effects,
                                std::uint64_t not_device, UndefinedLanes& data) {
  if (all_defined(effects)) [[likely]]
    return;
  if (reads_defined(effects)) return;
  const Source source = source_of(effects);
  const std::uint64_t exec = wave.exec();
  const bool is_lds = instruction.instruction_class == InstructionClass::lds;
  const bool has_data = effects.stores;
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Operand& operand = instruction.source[i];
    const bool is_data =
        (has_data && operand.is_vector() && i >= effects.data_operand && (i == effects.data_operand || is_lds)) ||
        (effects.space == Space::none && i + 1 == instruction.source_count);
    if (is_data) continue;
    const std::uint64_t lanes = operand.is_vector() ? undefined_lanes(operand) & exec : undefined_lanes(operand);
    if (lanes == 0 || exec == 0) continue;
    complain(wave, instruction, operand.is_vector() ? std::countr_zero(lanes) : -1, "the address", source);
    if (operand.is_vector()) {
      define({.first = operand.index, .count = operand.dwords, .scalar = false}, every_place);
    } else if (operand.index < sgpr_count) {
      define_scalar({.first = operand.index, .count = operand.dwords, .scalar = true});
    }
  }
  if (effects.lds_dma && scalars_[sgpr_m0] != 0) {
    complain(wave, instruction, -1, "the LDS address in M0", source);
    set_scalar(sgpr_m0, 0, {});
  }
  if (!has_data) return;
  data.bytes.fill(0);
  for (unsigned element = 0; element < effects.elements; ++element) {
    const Operand& operand = effects.keeps_destination && effects.atomic
                                 ? instruction.destination[0]
                                 : instruction.source[effects.data_operand + element];
    if (!operand.is_vector()) continue;
    const bool high_half = instruction.record->half == RegisterHalf::high;
    for (unsigned byte = 0; byte < effects.bytes; ++byte) {
      const unsigned place = byte + (high_half ? 2 : 0);
      std::uint64_t lanes = vectors_[operand.index + (place / 4)][place % 4] & exec;
      for (; lanes != 0; lanes &= lanes - 1) {
        data.any = true;
        data.bytes[static_cast<unsigned>(std::countr_zero(lanes))] |=
            static_cast<std::uint16_t>(1u << (byte + (element * effects.bytes)));
      }
    }
  }
  if (!data.any || is_lds || effects.space == Space::scratch) return;
  std::uint64_t bad = 0;
  for (unsigned lane = 0; lane < lane_places; ++lane) bad |= std::uint64_t{data.bytes[lane] != 0} << lane;
  bad &= ~not_device;
  if (bad != 0) complain(wave, instruction, std::countr_zero(bad), "what is stored", source);
}

void Definedness::after_scalar_load(const Instruction& instruction, const Effects& effects, std::uint32_t undefined) {
  for (; undefined != 0; undefined &= undefined - 1) {
    set_scalar(effects.writes[0].first + static_cast<unsigned>(std::countr_zero(undefined)), ~0U, {&instruction});
  }
}

void Definedness::after_memory(Wave& wave, const Instruction& instruction, const Effects& effects,
                               const UndefinedLanes& loaded) {
  if (!loaded.any && all_defined(effects)) [[likely]]
    return;
  if (effects.space == Space::none && effects.write_count != 0 && !reads_defined(effects)) {
    // Lane permutes: every lane of the result may come from any lane that is on.
    const std::uint64_t undefined = undefined_lanes(instruction.source[instruction.source_count - 1u]) & wave.exec();
    const Source source = source_of(effects);
    if (undefined != 0 && follow_move(wave, instruction, effects)) return;
    const std::uint64_t lanes = undefined == 0 ? 0 : every_place;
    for (unsigned i = 0; i < effects.writes[0].count; ++i) {
      set(effects.writes[0].first + i, {lanes, lanes, lanes, lanes}, wave.exec(), source);
    }
    return;
  }
  if (!loaded.any || effects.write_count == 0) return define_writes(wave, effects);
  const Registers& range = effects.writes[0];
  const Source source{&instruction};
  if (effects.action == Action::transpose_read) {
    // A group of 16 lanes exchanges its elements; what one of them lacks, all are taken to lack.
    std::uint64_t groups = 0;
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      if (loaded.bytes[lane] != 0) groups |= std::uint64_t{0xffff} << (lane / 16 * 16);
    }
    for (unsigned i = 0; i < range.count; ++i)
      set(range.first + i, {groups, groups, groups, groups}, every_place, source);
    return;
  }
  for (unsigned i = 0; i < range.count; ++i) {
    Planes planes{};
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      const unsigned bytes = effects.bytes < 4 ? (loaded.bytes[lane] != 0 ? 15u : 0u) : (loaded.bytes[lane] >> (4 * i));
      for (unsigned byte = 0; byte < 4; ++byte) planes[byte] |= std::uint64_t{(bytes >> byte) & 1} << lane;
    }
    set(range.first + i, planes, wave.exec(), source);
  }
}

}  // namespace wavejit::simgpu::checks
