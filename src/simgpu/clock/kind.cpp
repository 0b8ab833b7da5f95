#include "simgpu/clock/kind.h"

#include <algorithm>
#include <array>

namespace wavejit::simgpu::clock {
namespace {

template <std::size_t count>
bool starts_with_any(std::string_view text, const std::array<std::string_view, count>& heads) {
  return std::ranges::any_of(heads, [&](std::string_view head) { return text.starts_with(head); });
}

constexpr std::array<std::string_view, 7> transcendental = {"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                                            "v_sqrt_", "v_sin_", "v_cos_"};
constexpr std::array<std::string_view, 3> lane_moves = {"ds_bpermute_", "ds_permute_", "ds_swizzle_"};
// Measured at the plain rate although they read three operands: v_perm and v_cndmask at 4.01 cycles (MI300X).
constexpr std::array<std::string_view, 2> plain_with_three = {"v_perm_", "v_cndmask_"};

Kind scalar_kind(const Instruction& instruction) {
  const std::string_view name = instruction.mnemonic;
  if (name == "s_waitcnt") return Kind::wait;
  if (name == "s_barrier") return Kind::barrier;
  if (name == "s_branch" || name.starts_with("s_cbranch_") || name == "s_setpc_b64" || name == "s_swappc_b64") {
    return Kind::branch;
  }
  return instruction.instruction_class == InstructionClass::memory || name == "s_memtime" || name == "s_memrealtime"
             ? Kind::scalar_load
             : Kind::scalar;
}

Kind memory_kind(const Instruction& instruction) {
  const std::string_view name = instruction.mnemonic;
  if (name.starts_with("ds_")) {
    if (name.starts_with("ds_read")) return Kind::lds_read;
    return starts_with_any(name, lane_moves) ? Kind::lds_lanes : Kind::lds_write;
  }
  if (instruction.lds || name.contains("_load_lds_")) return Kind::lds_dma;
  return name.contains("_load_") || instruction.destination_count != 0 ? Kind::load : Kind::store;
}

}  // namespace

Kind kind_of(const Instruction& instruction) {
  const std::string_view name = instruction.mnemonic;
  if (instruction.instruction_class == InstructionClass::matrix) return Kind::matrix;
  if (name.starts_with("s_")) return scalar_kind(instruction);
  if (!name.starts_with("v_")) return memory_kind(instruction);
  if (starts_with_any(name, transcendental)) return Kind::transcendental;
  if (name.starts_with("v_permlane")) return Kind::lane_swap;
  if (name.contains("f64")) return Kind::double_precision;
  if (name.starts_with("v_pk_") && name.ends_with("_f32")) return Kind::packed;
  if (instruction.source_count == 3 && !starts_with_any(name, plain_with_three)) return Kind::three_source;
  return Kind::plain;
}

std::string_view to_text(Kind kind) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Kind::count)> names = {
      "matrix", "plain",       "three_source", "packed",  "transcendental", "lane_swap",
      "double", "lds_read",    "lds_write",    "lds_dma", "lds_lanes",      "load",
      "store",  "scalar_load", "wait",         "barrier", "branch",         "scalar"};
  return names[static_cast<std::size_t>(kind)];
}

int port_cycles(Kind kind, const Instruction& instruction, const timing::IssueCosts& costs) {
  constexpr std::uint8_t narrow = 2;  // registers of A or B
  switch (kind) {
    case Kind::matrix:
      return std::max(instruction.source[0].dwords, instruction.source[1].dwords) > narrow
                 ? costs.matrix_issue_wide.cycles()
                 : costs.matrix_issue.cycles();
    case Kind::plain:
      return costs.plain.cycles();
    case Kind::three_source:
      return costs.three_source.cycles();
    case Kind::packed:
      return costs.packed.cycles();
    case Kind::transcendental:
      return costs.transcendental.cycles();
    case Kind::lane_swap:
      return costs.lane_swap.cycles();
    case Kind::double_precision:
      return costs.double_precision.cycles();
    default:
      return 0;
  }
}

std::string lds_access_name(const Instruction& instruction) {
  const std::string_view name = instruction.mnemonic;
  if (name.starts_with("ds_read") || name.starts_with("ds_write")) return std::string(name);
  if (!instruction.lds && !name.contains("_load_lds_")) return {};
  if (name.ends_with("_dwordx4")) return "lds_dma_b128";
  if (name.ends_with("_dwordx3")) return "lds_dma_b96";
  return "lds_dma_b32";  // a dword, or less that fills one
}

}  // namespace wavejit::simgpu::clock
