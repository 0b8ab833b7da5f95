// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/facts/kind.h"

#include <array>

namespace wavejit::simgpu::clock {
namespace {

// LDS DMA is told from a load by its operand or by its record.
bool is_lds_dma(const Instruction& instruction) { return instruction.lds || instruction.record->to_lds; }

}  // namespace

Kind kind_of(const Instruction& instruction) {
  const Kind kind = instruction.record->kind;
  switch (kind) {
    case Kind::plain:
      return instruction.source_count == 3 && !instruction.record->three_sources_are_plain ? Kind::three_source : kind;
    case Kind::load:
      return is_lds_dma(instruction) ? Kind::lds_dma : kind;
    case Kind::store:
      return instruction.destination_count != 0 ? Kind::load : kind;  // an atomic that returns something
    default:
      return kind;
  }
}

std::string_view to_text(Kind kind) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Kind::count)> names = {
      "matrix", "plain",       "three_source", "packed",    "transcendental", "lane_swap", "double",
      "wide",   "multiply",    "lds_read",     "lds_write", "lds_dma",        "lds_lanes", "load",
      "store",  "scalar_load", "wait",         "barrier",   "branch",         "scalar"};
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
    case Kind::wide:
      return costs.wide.cycles();
    case Kind::multiply:
      return costs.multiply.cycles();
    default:
      return 0;
  }
}

std::string lds_access_name(const Instruction& instruction) {
  const Record& record = *instruction.record;
  if (record.space == Space::lds && !record.atomic) return std::string(instruction.mnemonic);
  if (!is_lds_dma(instruction)) return {};
  if (record.bytes == 16) return "lds_dma_b128";
  if (record.bytes == 12) return "lds_dma_b96";
  return "lds_dma_b32";  // a dword, or less that fills one
}

}  // namespace wavejit::simgpu::clock
