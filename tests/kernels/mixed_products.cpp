// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/mixed_products.h"

#include <array>
#include <format>
#include <set>

#include "analysis/flow.h"
#include "analysis/kernel_code.h"
#include "simgpu/checkers/facts/effects.h"

namespace wavejit::tests {
namespace {

constexpr unsigned vector_registers = 2 * simgpu::accumulation_base;  // those of accumulation included

}  // namespace

std::vector<std::string> mixed_products(std::span<const std::byte> code_object) {
  const auto code = analysis::KernelCode::read(code_object);
  if (!code) return {code.error()};
  const auto blocks = analysis::blocks_of(*code);
  if (!blocks) return {blocks.error()};
  std::set<std::string> pairs;
  for (const analysis::Block& block : *blocks) {
    std::array<const simgpu::Instruction*, vector_registers> written{};  // by matrix instructions
    for (std::size_t place = block.begin; place < block.end; ++place) {
      const simgpu::Instruction& instruction = code->instructions()[place];
      const simgpu::checks::Effects effects = simgpu::checks::describe(instruction);
      const bool is_matrix = effects.action == simgpu::Action::matrix;
      if (is_matrix && instruction.source[2].is_vector()) {
        const simgpu::Operand& c = instruction.source[2];
        for (unsigned i = c.index; i < c.index + unsigned{c.dwords}; ++i) {
          if (written[i] == nullptr || written[i]->record->shape == instruction.record->shape) continue;
          pairs.insert(
              std::format("{} goes on with the result of {}", code->text(instruction), code->text(*written[i])));
        }
      }
      for (unsigned i = 0; i < effects.write_count; ++i) {
        const simgpu::checks::Registers& range = effects.writes[i];
        if (range.scalar) continue;
        for (unsigned index = range.first; index < range.first + unsigned{range.count}; ++index)
          written[index] = is_matrix ? &instruction : nullptr;
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace wavejit::tests
