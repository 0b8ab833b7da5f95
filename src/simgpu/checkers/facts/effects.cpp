// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/facts/effects.h"

#include <bit>

namespace wavejit::simgpu::checks {
namespace {

class Describer {
 public:
  explicit Describer(const Instruction& instruction) : instruction_(instruction), record_(*instruction.record) {}

  Effects run() {
    from_record();
    for (unsigned i = 0; i < instruction_.source_count; ++i) read(instruction_.source[i]);
    for (unsigned i = 0; i < instruction_.destination_count; ++i) write(instruction_.destination[i]);
    implicit_registers();
    if (record_.keeps_destination) keep_destination();
    switch (instruction_.instruction_class) {
      case InstructionClass::control:
        control();
        break;
      case InstructionClass::vector:
        vector_instruction();
        break;
      case InstructionClass::memory:
        memory();
        break;
      case InstructionClass::lds:
        effects_.data_operand = 1;
        break;
      case InstructionClass::scalar:
      case InstructionClass::matrix:
        break;
    }
    hazards();
    return effects_;
  }

 private:
  void from_record() {
    effects_.action = record_.action;
    effects_.space = record_.space;
    effects_.loads = record_.loads;
    effects_.stores = record_.stores;
    effects_.atomic = record_.atomic;
    effects_.swaps = record_.swaps;
    effects_.all_lanes = record_.all_lanes;
    effects_.opaque = record_.relative;
    effects_.trans = record_.kind == IssueKind::transcendental;
    effects_.vector_alu = instruction_.instruction_class == InstructionClass::vector;
    effects_.scalar_alu = instruction_.instruction_class == InstructionClass::scalar;
    effects_.writes_scc = record_.writes_scc;
    effects_.reads_scc = record_.reads_scc || record_.action == Action::branch_scc;
    effects_.bytes = record_.bytes;
    effects_.elements = record_.elements;
    effects_.stride = record_.stride;
    effects_.counts_vector = record_.counts_vector;
    effects_.counts_local = record_.counts_local;
    const bool returns = record_.atomic && instruction_.destination_count != 0;
    effects_.counts_store = record_.split_counters && record_.counts_vector && !returns &&
                            (record_.stores || record_.action == Action::write_back);
  }
  // VCC of waves of 32 lanes is one register.
  Registers vcc() const {
    const bool narrow = instruction_.function != nullptr && instruction_.function->has_narrow_masks;
    return {.first = sgpr_vcc, .count = static_cast<std::uint8_t>(narrow ? 1 : 2), .scalar = true};
  }

  void read(const Operand& operand) {
    if (operand.is_vector()) {
      read({.first = operand.index, .count = operand.dwords, .scalar = false});
    } else if (operand.is_scalar() && operand.index < sgpr_count) {
      read({.first = operand.index, .count = operand.dwords, .scalar = true});
    } else if (operand.is_scalar() && operand.index == source_scc) {
      effects_.reads_scc = true;
    }
  }
  void read(Registers registers) {
    if (effects_.read_count < effects_.reads.size()) effects_.reads[effects_.read_count++] = registers;
    effects_.touched.insert(registers);
  }
  void write(const Operand& operand) {
    if (operand.is_vector()) {
      write({.first = operand.index, .count = operand.dwords, .scalar = false});
    } else if (operand.is_scalar() && operand.index < sgpr_count) {
      write({.first = operand.index, .count = operand.dwords, .scalar = true});
    }
  }
  void write(Registers registers) {
    if (effects_.write_count < effects_.writes.size()) effects_.writes[effects_.write_count++] = registers;
    effects_.touched.insert(registers);
  }
  void keep_destination() {
    if (effects_.keeps_destination) return;
    effects_.keeps_destination = true;
    if (record_.loads && !record_.atomic) effects_.kept = effects_.read_count;
    for (unsigned i = 0; i < instruction_.destination_count; ++i) read(instruction_.destination[i]);
  }

  void implicit_registers() {
    constexpr Registers exec{.first = sgpr_exec, .count = 2, .scalar = true};
    constexpr Registers m0{.first = sgpr_m0, .count = 1, .scalar = true};
    if (record_.changes_exec) {
      read(exec);
      write(exec);
    }
    if (record_.action == Action::branch_vcc) read(vcc());
    if (record_.reads_m0) read(m0);
    if (record_.writes_m0) write(m0);
  }

  void control() {
    // s_waitcnt of gfx9: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8 (CDNA3 ISA, S_WAITCNT).
    if (record_.action == Action::wait && record_.split_counters) {
      split_wait();
    } else if (record_.action == Action::wait) {
      const std::uint32_t word = instruction_.immediate;
      effects_.wait.vector = static_cast<std::uint8_t>((word & 0xf) | ((word >> 10) & 0x30));
      effects_.wait.local = static_cast<std::uint8_t>((word >> 8) & 0xf);
    } else if (record_.action == Action::nop) {
      effects_.wait_states = static_cast<std::uint8_t>((instruction_.immediate & 0xf) + 1);
    }
  }

  // One counter, or two of six bits: loads or stores above, LDS below.
  void split_wait() {
    constexpr std::uint8_t both = counter_load | counter_store | counter_ds;
    const auto word = static_cast<std::uint8_t>(instruction_.immediate & 0x3f);
    const auto above = static_cast<std::uint8_t>((instruction_.immediate >> 8) & 0x3f);
    const std::uint8_t counters = record_.waits;
    effects_.wait = {.vector = Counts::any, .local = Counts::any, .split = true};
    if (counters == counters_together) {  // loads in bits 15:10, the others in 9:4 (LLVM, decodeWaitcnt of gfx11)
      effects_.wait.vector = static_cast<std::uint8_t>((instruction_.immediate >> 10) & 0x3f);
      effects_.wait.local = effects_.wait.scalar = static_cast<std::uint8_t>((instruction_.immediate >> 4) & 0x3f);
      return;
    }
    if ((counters & counter_km) != 0 && (counters & both) == both) {
      effects_.wait = {.vector = 0, .local = 0, .split = true, .store = 0, .scalar = 0};  // s_wait_idle
      return;
    }
    const bool two = (counters & counter_ds) != 0 && counters != counter_ds;
    const std::uint8_t memory = two ? above : word;
    if ((counters & counter_load) != 0) effects_.wait.vector = memory;
    if ((counters & counter_store) != 0) effects_.wait.store = memory;
    if ((counters & counter_ds) != 0) effects_.wait.local = word;
    if ((counters & counter_km) != 0) effects_.wait.scalar = word;
  }

  // Both halves of a pair.
  void pair() {
    const Dual& dual = dual_of(instruction_);
    for (const Instruction* part : {&dual.first, &dual.second}) {
      for (unsigned i = 0; i < part->source_count; ++i) read(part->source[i]);
      const auto* bound = std::bit_cast<const vector::Bound*>(part->payload);
      if ((bound->flags & vector::flag_accumulates) != 0) read(part->destination[0]);
    }
  }

  void vector_instruction() {
    if (record_.action == Action::dual) return pair();
    if (instruction_.inner != nullptr) effects_.opaque = true;  // relative register numbers
    // Instructions that move between lanes have handlers of their own and no lane kernel.
    if (record_.action == Action::lane_swap || record_.action == Action::swap) {
      keep_destination();
      if (instruction_.destination_count == 1) write(instruction_.source[0]);
    } else if (record_.action == Action::none && instruction_.payload != 0) {
      effects_.bound = std::bit_cast<const vector::Bound*>(instruction_.payload);
      const unsigned flags = effects_.bound->flags;
      if ((flags & vector::flag_implicit_vcc) != 0) read(vcc());
      if ((flags & vector::flag_writes_exec) != 0) write({.first = sgpr_exec, .count = 2, .scalar = true});
      if ((flags & (vector::flag_accumulates | vector::flag_keeps_high_half)) != 0) keep_destination();
      if (instruction_.encoding == Encoding::sdwa && instruction_.destination_unused == UnusedBits::preserve) {
        keep_destination();
      }
      if (instruction_.encoding == Encoding::dpp &&
          (!instruction_.bound_ctrl || instruction_.row_mask != 0xf || instruction_.bank_mask != 0xf)) {
        effects_.keeps_destination = true;
      }
    }
  }

  void memory() {
    if (effects_.space == Space::scalar || effects_.space == Space::scalar_buffer) return;
    const bool is_buffer = effects_.space == Space::buffer;
    if (effects_.atomic) {
      const bool returns = instruction_.destination_count != 0;
      effects_.address_operand = is_buffer && !returns ? 1 : 0;
      effects_.data_operand = is_buffer ? 0 : 1;
      if (is_buffer && returns) keep_destination();
      return;
    }
    effects_.lds_dma = record_.to_lds || instruction_.lds;
    if (effects_.lds_dma) read({.first = sgpr_m0, .count = 1, .scalar = true});
    effects_.address_operand = is_buffer && effects_.stores ? 1 : 0;
    effects_.data_operand = is_buffer ? 0 : 1;
  }

  void hazards() {
    switch (effects_.action) {
      case Action::matrix:
        effects_.product = matrix_product(instruction_);
        effects_.asks_hazards = true;
        return;
      case Action::read_first_lane:
      case Action::read_lane:
      case Action::write_lane:
      case Action::lane_swap:
      case Action::get_register:
        effects_.asks_hazards = true;
        break;
      case Action::set_register:
        effects_.product = Product::mode;
        break;
      default:
        break;
    }
    if (effects_.vector_alu) {
      effects_.product = vector_product();
      if (instruction_.encoding == Encoding::dpp || may_lose_an_addition(instruction_)) effects_.asks_hazards = true;
    }
    if (effects_.lds_dma || record_.reads_m0) effects_.asks_hazards = true;
  }
  Product vector_product() const {
    const bool part = instruction_.encoding == Encoding::sdwa
                          ? instruction_.destination_select != SubDword::dword
                          : effects_.bound != nullptr && (instruction_.op_sel & 8) != 0;
    if (part || record_.result == ResultKind::partial) return Product::vector_part;
    if (record_.result == ResultKind::dot_product) return Product::vector_dot;
    return effects_.trans ? Product::vector_trans : Product::vector;
  }

  const Instruction& instruction_;
  const Record& record_;
  Effects effects_;
};

}  // namespace

Effects describe(const Instruction& instruction) { return Describer(instruction).run(); }

FunctionEffects::FunctionEffects(const Function& function) {
  effects_.reserve(function.instructions.size());
  for (const Instruction& instruction : function.instructions) {
    const Effects& effects = effects_.emplace_back(describe(instruction));
    const bool controls = effects.action == Action::write_back || effects.action == Action::invalidate;
    const bool is_access = effects.counts_vector && !effects.atomic && (effects.loads || effects.stores);
    swaps_ = swaps_ || effects.swaps;
    orders_workgroups_ = orders_workgroups_ || (instruction.sc1 && (controls || is_access));
  }
}

const FunctionEffects& effects_of(const Function& function) {
  std::call_once(function.effects_once, [&] { function.effects = std::make_shared<const FunctionEffects>(function); });
  return *function.effects;
}

}  // namespace wavejit::simgpu::checks
