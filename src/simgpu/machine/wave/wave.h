// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of one wave: what instruction handlers read and write.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "simgpu/machine/instruction/instruction.h"
#include "simgpu/machine/instruction/lane_places.h"

namespace wavejit::simgpu {

struct Allocation;
struct Workgroup;
namespace matrix {
struct Summation;
}

enum class WaveState : std::uint8_t { ready, at_barrier, sleeping, ended, faulted };

// MODE register fields (CDNA3 ISA, "MODE register"). Denormal fields: bit 0 keeps input denormals, bit 1 output
// denormals.
inline constexpr std::uint32_t mode_dx10_clamp = 1u << 8;
inline constexpr std::uint32_t mode_ieee = 1u << 9;

struct alignas(64) Wave {
  std::uint32_t vgpr[512][lane_places];
  std::uint32_t sgpr[sgpr_count];  // VCC, M0 and EXEC included, at their encoded numbers

  std::uint64_t all_lanes = every_place;  // a bit for each
  std::uint32_t lane_count = lane_places;

  const Instruction* next = nullptr;
  // Instructions this wave may still execute before the scheduler looks again.
  std::int64_t budget = 0;
  std::uint32_t scc = 0;   // 0 or 1
  std::uint32_t mode = 0;  // as s_getreg reads it
  WaveState state = WaveState::ready;
  std::uint8_t priority = 0;
  bool times_matrix = false;
  // Barriers in two parts (RDNA4): the wave has arrived, and all have.
  bool has_signalled = false;
  bool may_pass = false;
  std::uint16_t index = 0;  // in its workgroup
  std::uint32_t status_bits = 0;
  std::uint32_t transcendentals_key = 0;  // 0: results are the nearest ones (numerics/permitted.h)
  std::uint64_t matrix_instructions = 0;
  std::uint64_t matrix_nanoseconds = 0;  // within them, if `times_matrix`
  std::uint64_t executed = 0;
  std::uint64_t slept = 0;  // cycles that s_sleep stood for

  const matrix::Summation* summation = nullptr;  // null: k ascending, as matrix/README.md says

  std::uint8_t* lds = nullptr;
  std::uint32_t lds_bytes = 0;  // of this workgroup's allocation
  Workgroup* workgroup = nullptr;
  const Allocation* recent_allocation[4] = {};  // what Launch::find found

  std::uint8_t* scratch = nullptr;  // private memory, lane after lane
  std::uint32_t scratch_bytes_per_lane = 0;

  // A target's wave size, at most lane_places.
  void set_lane_count(unsigned lanes) {
    lane_count = lanes;
    all_lanes = every_place >> (lane_places - lanes);
  }
  // What its clock shows: instructions executed stand for four cycles each, which is monotonic and the same on every
  // run, and sleep for what it asks for.
  std::uint64_t cycles() const { return ((executed - static_cast<std::uint64_t>(budget)) * 4) + slept; }
  // Units of 64 cycles, and another wave's turn.
  void sleep(std::uint32_t units) {
    constexpr std::uint64_t unit = 64;
    slept += unit * (units & 0x7f);
    stop(WaveState::sleeping);
  }
  std::uint64_t exec() const { return sgpr64(sgpr_exec) & all_lanes; }
  void set_exec(std::uint64_t mask) { set_sgpr64(sgpr_exec, mask); }
  // In waves of 32 lanes VCC_HI is a register like others.
  std::uint64_t vcc() const { return sgpr64(sgpr_vcc) & all_lanes; }
  void set_vcc(std::uint64_t mask) { set_sgpr64(sgpr_vcc, mask); }
  std::uint32_t m0() const { return sgpr[sgpr_m0]; }

  std::uint64_t sgpr64(unsigned first) const {
    return sgpr[first] | (static_cast<std::uint64_t>(sgpr[first + 1]) << 32);
  }
  void set_sgpr64(unsigned first, std::uint64_t value) {
    sgpr[first] = static_cast<std::uint32_t>(value);
    sgpr[first + 1] = static_cast<std::uint32_t>(value >> 32);
  }

  // A scalar source as 32 bits: register, read-only source or constant (no modifiers applied).
  std::uint32_t scalar(const Operand& operand) const {
    if (operand.is_constant()) return operand.bits;
    if (operand.index < sgpr_count) return sgpr[operand.index];
    return scalar_special(operand.index);
  }
  // A scalar source as 64 bits: integer rules for constants.
  std::uint64_t scalar64(const Operand& operand) const {
    if (operand.is_constant()) return operand.constant_b64();
    if (operand.index < sgpr_count - 1) return sgpr64(operand.index);
    return scalar_special64(operand.index);
  }
  // A lane mask: two scalar registers, or one where waves have 32 lanes.
  std::uint64_t mask(const Operand& operand) const {
    return operand.dwords == 1 ? scalar_mask(operand) : scalar64(operand);
  }
  void set_mask(const Operand& operand, std::uint64_t value) {
    if (operand.dwords == 1) return set_scalar(operand, static_cast<std::uint32_t>(value));
    set_scalar64(operand, value);
  }
  void set_scalar(const Operand& operand, std::uint32_t value) {
    if (operand.index < sgpr_count) sgpr[operand.index] = value;
  }
  void set_scalar64(const Operand& operand, std::uint64_t value) {
    if (operand.index < sgpr_count - 1) set_sgpr64(operand.index, value);
  }

  // All places of a source: the register itself, the shared copies of a constant, or `scratch_lanes` filled from an
  // SGPR. `dword` chooses among the registers of a wider operand (constants: see Operand::constant_* for 64-bit
  // types).
  const std::uint32_t* lanes(const Operand& operand, std::uint32_t (&scratch_lanes)[lane_places],
                             unsigned dword = 0) const {
    if (operand.is_vector()) return vgpr[operand.index + dword];
    if (operand.lanes != nullptr) return operand.lanes;
    const std::uint32_t value =
        operand.index + dword < sgpr_count ? sgpr[operand.index + dword] : scalar_special(operand.index);
    for (std::uint32_t& lane : scratch_lanes) lane = value;
    return scratch_lanes;
  }

  unsigned round_f32() const { return mode & 3; }  // 0 nearest even, 1 +inf, 2 -inf, 3 zero
  unsigned round_f16_f64() const { return (mode >> 2) & 3; }
  unsigned denormal_f32() const { return (mode >> 4) & 3; }  // 3 keeps denormals, 0 flushes both ways
  unsigned denormal_f16_f64() const { return (mode >> 6) & 3; }
  bool dx10_clamp() const { return (mode & mode_dx10_clamp) != 0; }
  bool ieee() const { return (mode & mode_ieee) != 0; }

  // Leave the dispatch loop after this instruction (barrier, end, fault).
  void stop(WaveState reason) {
    state = reason;
    give_way();
  }
  void give_way() {
    executed -= static_cast<std::uint64_t>(budget);
    budget = 0;
  }

  // Constants are one dword and mean all the bits that they extend to.
  std::uint64_t scalar_mask(const Operand& operand) const {
    return operand.is_constant() ? operand.constant_b64() : scalar(operand);
  }
  std::uint32_t scalar_special(unsigned source) const;
  std::uint64_t scalar_special64(unsigned source) const;
};

// `code` is the HIP error that the launch ends with (719 hipErrorLaunchFailure; memory handlers use 700
// hipErrorIllegalAddress). Reports what is wrong with this instruction and ends the launch. `text` says what; kernel,
// instruction, offset, workgroup and wave are added. `lane` < 0: the whole wave.
void fault(Wave& wave, const Instruction& instruction, const std::string& text, int lane = -1, int code = 719);

// Calls `body(lane)` for the active lanes, lowest first.
template <typename Body>
inline void for_active_lanes(std::uint64_t exec, Body&& body) {
  if (exec == every_place) {
    for (unsigned lane = 0; lane < lane_places; ++lane) body(lane);
    return;
  }
  for (std::uint64_t rest = exec; rest != 0; rest &= rest - 1) body(static_cast<unsigned>(std::countr_zero(rest)));
}

}  // namespace wavejit::simgpu
