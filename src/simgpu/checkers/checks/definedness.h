// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which bytes of a wave's registers hold something that was ever written. Moves, packs, permutes and selects carry the
// bytes along; arithmetic on a byte that holds nothing gives a result that holds nothing. Nothing is said until such a
// byte decides something: an address, a branch, EXEC, or what a store leaves in memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "simgpu/checkers/checks/lds_shadow.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/checkers/facts/register_set.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::checks {

class Definedness {
 public:
  // A wave that starts: `scalars` registers hold what the launch gave it, v0 the work-item ids of the active lanes.
  void prepare(const Wave& wave, unsigned scalars);

  // An instruction that is about to run and touches no memory.
  void step(Wave& wave, const Instruction& instruction, const Effects& effects) {
    if (all_defined(effects) && !effects.opaque) [[likely]]
      return;
    if (effects.opaque) {
      follow_relative(wave, instruction, effects);
    } else if (reads_defined(effects)) {
      define_writes(wave, effects);
    } else {
      follow(wave, instruction, effects);
    }
  }

  // Memory instructions: addresses and the data of stores. Reports addresses that hold nothing; `data` receives the
  // undefined bytes that an LDS store would write, and stores to device memory report theirs.
  // `not_device`: the lanes of a flat instruction that store to LDS or to private memory.
  void before_memory(Wave& wave, const Instruction& instruction, const Effects& effects, std::uint64_t not_device,
                     UndefinedLanes& data);
  // The destination of a load: defined, but for `loaded`.
  void after_memory(Wave& wave, const Instruction& instruction, const Effects& effects, const UndefinedLanes& loaded);
  // After that: dwords that a scalar load got and that hold nothing, a bit each.
  void after_scalar_load(const Instruction& instruction, const Effects& effects, std::uint32_t undefined);

 private:
  enum class Origin : std::uint8_t { never_written, memory };
  struct Source {
    const Instruction* instruction = nullptr;  // the load that got it; null: the register was never written
  };
  using Planes = std::array<std::uint64_t, 4>;  // per byte of a register, the lanes in which it holds nothing

  // Whatever the instruction does with its registers, they hold something before and after.
  bool all_defined(const Effects& effects) const { return !scc_undefined_ && !dirty_.meets(effects.touched); }
  bool reads_defined(const Effects& effects) const {
    bool dirty = effects.reads_scc && scc_undefined_;
    for (unsigned i = 0; i < effects.read_count; ++i) dirty |= dirty_.any(effects.reads[i]);
    return !dirty;
  }
  void define_writes(const Wave& wave, const Effects& effects) {
    const std::uint64_t lanes = effects.all_lanes ? wave.all_lanes : wave.exec();
    for (unsigned i = 0; i < effects.write_count; ++i) {
      const Registers& range = effects.writes[i];
      if (!dirty_.any(range)) continue;
      if (range.scalar) {
        define_scalar(range);
      } else {
        define(range, lanes);
      }
    }
    if (effects.writes_scc) scc_undefined_ = false;
  }
  void define(const Registers& range, std::uint64_t lanes);
  void define_scalar(const Registers& range);
  void set(unsigned vector, const Planes& planes, std::uint64_t lanes, Source source);
  void set_scalar(unsigned scalar, std::uint32_t bits, Source source);
  const Planes& planes(unsigned vector) const { return vectors_[vector]; }
  // Lanes in which any byte of the operand holds nothing. Scalars and SCC: all lanes or none.
  std::uint64_t undefined_lanes(const Operand& operand) const;
  std::uint64_t undefined_bits(const Operand& operand) const;
  Source source_of(const Effects& effects) const;

  void follow(Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_relative(const Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_bits(Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_pair(Wave& wave, const Instruction& instruction);
  void follow_wmma(Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_scalar(Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_vector(Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_matrix(Wave& wave, const Instruction& instruction, const Effects& effects);
  void follow_select(Wave& wave, const Instruction& instruction, const Effects& effects);
  bool follow_insertion(Wave& wave, const Instruction& instruction, const Effects& effects);
  bool follow_move(Wave& wave, const Instruction& instruction, const Effects& effects);
  void write_mask(Wave& wave, const Instruction& instruction, const Operand& destination, std::uint64_t undefined,
                  Source source);
  void check_exec(Wave& wave, const Instruction& instruction, Source source);
  void complain(Wave& wave, const Instruction& instruction, int lane, std::string_view what, Source source);

  std::array<Planes, 512> vectors_;
  std::array<const Instruction*, 512> vector_sources_;
  std::array<std::uint32_t, sgpr_count> scalars_;  // bits that hold nothing
  std::array<const Instruction*, sgpr_count> scalar_sources_;
  RegisterSet dirty_;  // registers of which some byte in some lane holds nothing
  // Masks that a compiler keeps in lanes of a vector register, by register · 64 + lane: the bits that hold nothing,
  // where these are some but not all.
  std::unordered_map<std::uint32_t, std::uint32_t> spilled_bits_;
  bool scc_undefined_ = false;
  const Instruction* scc_source_ = nullptr;
};

}  // namespace wavejit::simgpu::checks
