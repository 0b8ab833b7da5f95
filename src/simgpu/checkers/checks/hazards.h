// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Unmet wait states (hazard_rules.h), counted as the compiler counts them: along the instructions that a wave runs.
#pragma once

#include <array>
#include <cstdint>

#include "simgpu/checkers/facts/effects.h"
#include "simgpu/checkers/facts/hazard_rules.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/config.h"

namespace wavejit::simgpu::checks {

class Hazards {
 public:
  void prepare(const targets::Target& target, Rules rules);
  // An instruction that is about to run.
  void step(Wave& wave, const Instruction& instruction, const Effects& effects) {
    if (effects.asks_hazards || in_danger_.meets(effects.touched)) look(wave, instruction, effects);
    record(instruction, effects);
    clock_ += effects.wait_states;
  }

 private:
  // A mark lives 35 clocks at most (18, a clock for each of 16 passes, and its own), and an instruction has three
  // events at most (its results). The ring holds more than their product: no event is replaced while a mark names it.
  static constexpr unsigned ring = 256;
  static constexpr std::uint64_t longest = 24;
  // Something produced: by which of the last events, and from when on no rule asks about it.
  struct Mark {
    std::uint32_t safe = 0;
    std::uint16_t event = 0;
    Product product = Product::none;
  };
  struct Event {
    const Instruction* instruction = nullptr;
    Product product = Product::none;
    std::uint8_t passes = 0;
    std::uint32_t clock = 0;
    Registers result;
  };
  void look(Wave& wave, const Instruction& instruction, const Effects& effects);
  void settle(const Effects& effects);
  void check_vector(Wave& wave, const Instruction& instruction, const Registers& range, Use use, const Mark* marks);
  void check_scalar(Wave& wave, const Instruction& instruction, const Registers& range, Use use);
  void check_mark(Wave& wave, const Instruction& instruction, const Mark& mark, Use use, unsigned index);
  void record(const Instruction& instruction, const Effects& effects);
  void mark(const Registers& range, Mark* marks, Mark event);
  Mark event(const Instruction& instruction, Product product, std::uint8_t passes, Registers result);
  int needed(const HazardRule& rule, unsigned passes) const;

  const isa::MatrixPipe* pipe_ = nullptr;
  int extra_wait_states_ = 0;
  bool distrusts_packed_fma_ = false;
  std::uint32_t clock_ = 0;
  std::uint32_t overwrite_until_ =
      0;  // until when results of matrix instructions and dot products must not be overwritten
  std::uint32_t store_until_ = 0;
  // Registers with marks, some of which may be over. Vector results are left out: they matter only to matrix
  // instructions and to those that move between lanes, which are always checked (`Effects::asks_hazards`).
  RegisterSet in_danger_;
  std::array<Mark, 512> written_;
  std::array<Mark, 512> read_by_matrix_;
  std::array<Mark, 512> read_by_store_;
  std::array<Mark, sgpr_count> scalar_written_;
  Mark exec_written_;
  Mark m0_written_;
  Mark mode_written_;
  std::array<Event, ring> events_;
  unsigned next_event_ = 0;
  std::array<std::array<const HazardRule*, static_cast<std::size_t>(Use::count)>,
             static_cast<std::size_t>(Product::count)>
      rules_{};
  // Per product: the most that any rule asks for, without passes and per pass.
  std::array<int, static_cast<std::size_t>(Product::count)> most_states_{};
  std::array<int, static_cast<std::size_t>(Product::count)> most_per_pass_{};
};

}  // namespace wavejit::simgpu::checks
