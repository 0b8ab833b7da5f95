// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/hazards.h"

#include <algorithm>
#include <format>

#include "isa/matrix.h"
#include "simgpu/machine/launch/finding.h"
#include "targets/targets.h"

namespace wavejit::simgpu::checks {
namespace {

bool is_same_operation(const Instruction& one, const Instruction& other) {
  return one.record == other.record && one.encoding == other.encoding;
}

// Whether the matrix pipe hands the earlier result on to the later one as its C without wait states: of one
// instruction, scaled or not, with formats of as many bits (hazard_rules.cpp).
bool is_one_chain(const Instruction& earlier, const Instruction& later, const isa::MatrixPipe& pipe) {
  return earlier.record->shape == later.record->shape && earlier.source[0].dwords == later.source[0].dwords &&
         earlier.source[1].dwords == later.source[1].dwords &&
         matrix_passes(earlier, pipe) == matrix_passes(later, pipe);
}

// What a dot product adds to and does not multiply: its third source, or the destination that it accumulates in.
bool is_addend(const Instruction& instruction, const Effects& effects, const Registers& range) {
  if (effects.product != Product::vector_dot) return false;
  constexpr unsigned factors = 2;
  const Operand& addend = instruction.source_count > factors ? instruction.source[factors] : instruction.destination[0];
  const auto is_range = [&](const Operand& operand) {
    return operand.is_vector() && operand.index == range.first && operand.dwords == range.count;
  };
  return is_range(addend) && !is_range(instruction.source[0]) && !is_range(instruction.source[1]);
}

}  // namespace

void Hazards::prepare(const targets::Target& target, Rules rules) {
  pipe_ = &isa::matrix_pipe(target);
  extra_wait_states_ = pipe_->wide ? 1 : 0;
  distrusts_packed_fma_ = pipe_->wide && rules == Rules::strict;
  clock_ = 1000;  // everything before the start is long past
  overwrite_until_ = store_until_ = 0;
  in_danger_.clear();
  written_.fill({});
  read_by_matrix_.fill({});
  read_by_store_.fill({});
  scalar_written_.fill({});
  exec_written_ = m0_written_ = mode_written_ = {};
  next_event_ = 0;
  for (const HazardRule& rule : hazard_rules()) {
    const auto product = static_cast<std::size_t>(rule.product);
    rules_[product][static_cast<std::size_t>(rule.use)] = &rule;
    most_states_[product] =
        std::max(most_states_[product], rule.states + (rule.extra_from != 0 ? extra_wait_states_ : 0));
    most_per_pass_[product] = std::max(most_per_pass_[product], rule.passes);
  }
  // These are vector results too.
  const int of_vectors = most_states_[static_cast<std::size_t>(Product::vector)];
  for (const Product product : {Product::vector_trans, Product::vector_part, Product::vector_dot}) {
    most_states_[static_cast<std::size_t>(product)] =
        std::max(most_states_[static_cast<std::size_t>(product)], of_vectors);
  }
}

int Hazards::needed(const HazardRule& rule, unsigned passes) const {
  const bool has_extra = rule.extra_from != 0 && passes >= rule.extra_from;
  return rule.states + (rule.passes * static_cast<int>(passes)) + (has_extra ? extra_wait_states_ : 0);
}

Hazards::Mark Hazards::event(const Instruction& instruction, Product product, std::uint8_t passes, Registers result) {
  const auto index = static_cast<std::uint16_t>(next_event_++ % ring);
  events_[index] = {
      .instruction = &instruction, .product = product, .passes = passes, .clock = clock_, .result = result};
  const auto of = static_cast<std::size_t>(product);
  const int most = most_states_[of] + (most_per_pass_[of] * passes);
  return {.safe = clock_ + 1 + static_cast<std::uint32_t>(std::max(most, 0)), .event = index, .product = product};
}

void Hazards::mark(const Registers& range, Mark* marks, Mark event) {
  if (event.product != Product::vector) in_danger_.insert(range);
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) marks[i] = event;
}

void Hazards::check_mark(Wave& wave, const Instruction& instruction, const Mark& mark, Use use, unsigned index) {
  const Event& made = events_[mark.event];
  // A dot product goes on with the result of the same one (LLVM checkMAIVALUHazards), or replaces it.
  const bool goes_on = use == Use::dot_addend || use == Use::vector_write;
  if (made.product == Product::vector_dot && goes_on && is_same_operation(*made.instruction, instruction)) return;
  if (use == Use::dot_addend) use = Use::vector_read;
  const HazardRule* rule = rules_[static_cast<std::size_t>(made.product)][static_cast<std::size_t>(use)];
  if (rule == nullptr && use == Use::trans_read && made.product != Product::vector_trans) {
    // Transcendental instructions read like any other; only what one of them made, they get in time.
    use = Use::vector_read;
    rule = rules_[static_cast<std::size_t>(made.product)][static_cast<std::size_t>(use)];
  }
  if (rule == nullptr && (made.product == Product::vector_trans || made.product == Product::vector_part ||
                          made.product == Product::vector_dot)) {
    // These are vector results too.
    rule = rules_[static_cast<std::size_t>(Product::vector)][static_cast<std::size_t>(use)];
  }
  if (rule == nullptr || (rule->only_passes != 0 && rule->only_passes != made.passes)) return;
  const int states = needed(*rule, made.passes);
  const int between = static_cast<int>(clock_ - made.clock) - 1;
  if (between >= states || !worth_reporting(wave, instruction, Check::hazards, made.instruction)) return;
  std::string place =
      index < accumulation_base ? std::format("v{}", index) : std::format("a{}", index - unsigned{accumulation_base});
  if (made.product >= Product::scalar_by_vector) place = index == sgpr_vcc ? "vcc" : std::format("s{}", index);
  if (made.product == Product::exec_by_vector) place = "exec";
  if (made.product == Product::m0_by_scalar) place = "m0";
  if (made.product == Product::mode) place = "the register";
  report(wave, instruction, Check::hazards, -1,
         std::format("{} wait states after {}, {} are needed: {} in {} ({})", between,
                     name_instruction(*made.instruction), states, rule->what, place, rule->source),
         {.instruction = made.instruction, .wave = wave.index});
}

void Hazards::check_vector(Wave& wave, const Instruction& instruction, const Registers& range, Use use,
                           const Mark* marks) {
  const Mark* last = nullptr;
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) {
    if (clock_ >= marks[i].safe) continue;
    // If one result has several registers, the first stands for all.
    if (last != nullptr && last->event == marks[i].event) continue;
    last = &marks[i];
    Use here = use;
    if (use == Use::matrix_c) {
      const Event& made = events_[marks[i].event];
      const bool by_matrix = made.product >= Product::matrix && made.product <= Product::matrix_f64;
      const bool is_result = by_matrix && made.result.first == range.first && made.result.count == range.count;
      if (is_result && is_one_chain(*made.instruction, instruction, *pipe_)) {
        here = Use::matrix_same_c;
      } else if (matrix_product(instruction) != Product::matrix) {
        here = Use::matrix_float_c;
      }
      // What a chain waits for, others that go on with the same registers wait for, too.
      if (is_result && here != Use::matrix_same_c) {
        check_mark(wave, instruction, marks[i], here, i);
        here = Use::matrix_same_c;
      }
    }
    check_mark(wave, instruction, marks[i], here, i);
  }
}

void Hazards::check_scalar(Wave& wave, const Instruction& instruction, const Registers& range, Use use) {
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) {
    if (clock_ >= scalar_written_[i].safe) continue;
    check_mark(wave, instruction, scalar_written_[i], use, i);
  }
}

// Registers whose marks are over are left alone from now on.
void Hazards::settle(const Effects& effects) {
  const auto over = [&](const Mark& mark) { return clock_ >= mark.safe || mark.product == Product::vector; };
  const auto settle = [&](const Registers& range) {
    for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) {
      if (range.scalar) {
        if (over(scalar_written_[i])) in_danger_.erase_scalar(i);
      } else if (over(written_[i]) && over(read_by_matrix_[i]) && over(read_by_store_[i])) {
        in_danger_.erase_vector(i);
      }
    }
  };
  for (unsigned i = 0; i < effects.read_count; ++i) settle(effects.reads[i]);
  for (unsigned i = 0; i < effects.write_count; ++i) settle(effects.writes[i]);
}

void Hazards::look(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const bool is_matrix = effects.action == Action::matrix;
  const bool is_memory = instruction.instruction_class == InstructionClass::lds ||
                         (instruction.instruction_class == InstructionClass::memory && effects.counts_vector);
  const bool is_vector = effects.vector_alu;
  if (is_vector && distrusts_packed_fma_ && may_lose_an_addition(instruction) &&
      worth_reporting(wave, instruction, Check::hazards)) {
    report(
        wave, instruction, Check::hazards, -1,
        "takes the high half of its second source for its low result: gfx950 was seen to leave out that addition now "
        "and then (ROCm/rocMLIR#2459)");
  }
  if (is_matrix || is_memory || is_vector) {
    Use read = Use::vector_read;
    if (is_memory) read = Use::memory_read;
    if (effects.trans) read = Use::trans_read;
    const Operand* select = nullptr;
    if (effects.action == Action::read_lane || effects.action == Action::write_lane) select = &instruction.source[1];
    const bool reads_lanes = effects.action == Action::read_lane || effects.action == Action::read_first_lane;
    const bool is_dpp = instruction.encoding == Encoding::dpp;
    for (unsigned i = 0; i < effects.read_count; ++i) {
      const Registers& range = effects.reads[i];
      if (range.scalar) {
        if (is_matrix || instruction.instruction_class == InstructionClass::lds) continue;
        Use use = is_memory ? Use::scalar_read_by_memory : Use::scalar_read_by_vector;
        if (select != nullptr && select->is_scalar() && select->index == range.first) use = Use::lane_select;
        if (range.first == sgpr_vcc && instruction.record->divides) use = Use::div_fmas;
        check_scalar(wave, instruction, range, use);
        continue;
      }
      if (is_matrix) {
        // The third source is C; A and B come before it, scales after it.
        const Operand& c = instruction.source[2];
        const bool is_c = c.is_vector() && i < 3 && range.first == c.index && range.count == c.dwords &&
                          !(instruction.source[0].index == c.index && i == 0) &&
                          !(instruction.source[1].index == c.index && i <= 1);
        check_vector(wave, instruction, range, is_c ? Use::matrix_c : Use::matrix_ab, written_.data());
        continue;
      }
      check_vector(wave, instruction, range, is_addend(instruction, effects, range) ? Use::dot_addend : read,
                   written_.data());
      if (reads_lanes) check_vector(wave, instruction, range, Use::lane_read, written_.data());
      if (effects.action == Action::lane_swap) {
        check_vector(wave, instruction, range, Use::permlane_read, written_.data());
      }
      if (is_dpp && i == 0) check_vector(wave, instruction, range, Use::dpp_read, written_.data());
    }
    if (!is_matrix) {
      const Use write = is_memory ? Use::memory_write : Use::vector_write;
      for (unsigned i = 0; i < effects.write_count; ++i) {
        const Registers& range = effects.writes[i];
        if (range.scalar) continue;
        if (clock_ < overwrite_until_) {
          check_vector(wave, instruction, range, write, written_.data());
          check_vector(wave, instruction, range, write, read_by_matrix_.data());
        }
        if (clock_ < store_until_ && is_vector) check_vector(wave, instruction, range, write, read_by_store_.data());
      }
    }
    if (clock_ < exec_written_.safe) {
      if (is_matrix) check_mark(wave, instruction, exec_written_, Use::exec_by_matrix, sgpr_exec);
      if (is_dpp) check_mark(wave, instruction, exec_written_, Use::exec_by_dpp, sgpr_exec);
      if (reads_lanes || effects.action == Action::write_lane) {
        check_mark(wave, instruction, exec_written_, Use::exec_by_lane, sgpr_exec);
      }
    }
    if (clock_ < m0_written_.safe && is_memory && (effects.lds_dma || instruction.record->reads_m0)) {
      check_mark(wave, instruction, m0_written_, Use::m0_by_memory, sgpr_m0);
    }
  } else if (clock_ < mode_written_.safe && effects.action == Action::get_register) {
    const Event& made = events_[mode_written_.event];
    // The same hardware register: the low six bits of the immediate.
    if (((made.instruction->immediate ^ instruction.immediate) & 0x3f) == 0) {
      check_mark(wave, instruction, mode_written_, Use::mode_read, 0);
    }
  }
  // What a matrix instruction touches, it is about to mark anew.
  if (!is_matrix) settle(effects);
}

void Hazards::record(const Instruction& instruction, const Effects& effects) {
  if (effects.action == Action::matrix) {
    const Product product = effects.product;
    const auto passes = static_cast<std::uint8_t>(matrix_passes(instruction, *pipe_));
    mark(effects.writes[0], written_.data(), event(instruction, product, passes, effects.writes[0]));
    const Operand& c = instruction.source[2];
    if (product == Product::matrix && c.is_vector()) {
      const Registers range{.first = c.index, .count = c.dwords, .scalar = false};
      mark(range, read_by_matrix_.data(), event(instruction, Product::matrix_c, passes, range));
    }
    overwrite_until_ = static_cast<std::uint32_t>(clock_ + longest);
    return;
  }
  if (effects.vector_alu) {
    const Product product = effects.product;
    if (product == Product::vector_dot) overwrite_until_ = std::max(overwrite_until_, clock_ + 4);
    for (unsigned i = 0; i < effects.write_count; ++i) {
      const Registers& range = effects.writes[i];
      if (!range.scalar) {
        mark(range, written_.data(), event(instruction, product, 0, range));
      } else if (range.first == sgpr_exec) {
        exec_written_ = event(instruction, Product::exec_by_vector, 0, range);
      } else {
        mark(range, scalar_written_.data(), event(instruction, Product::scalar_by_vector, 0, range));
      }
    }
    return;
  }
  if (effects.scalar_alu) {
    // A scalar result over a vector instruction's makes the register safe again.
    for (unsigned i = 0; i < effects.write_count; ++i) {
      const Registers& range = effects.writes[i];
      if (range.first == sgpr_m0) m0_written_ = event(instruction, Product::m0_by_scalar, 0, range);
      mark(range, scalar_written_.data(), {});
      in_danger_.erase(range);
    }
    return;
  }
  if (effects.product == Product::mode) {
    mode_written_ = event(instruction, Product::mode, 0, {});
    return;
  }
  const bool wide_store = effects.stores && !effects.atomic && effects.counts_vector && effects.bytes > 8;
  if (wide_store) {
    const Operand& data = instruction.source[effects.data_operand];
    if (!data.is_vector()) return;
    const bool behind_offset = effects.space == Space::buffer && instruction.source[3].is_scalar();
    const Product product = behind_offset ? Product::store_data_behind_offset : Product::store_data;
    const Registers range{.first = data.index, .count = data.dwords, .scalar = false};
    mark(range, read_by_store_.data(), event(instruction, product, 0, range));
    store_until_ = clock_ + 4;
  }
}

}  // namespace wavejit::simgpu::checks
