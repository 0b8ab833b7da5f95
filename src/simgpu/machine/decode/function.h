// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A function of a loaded code object, decoded: its instructions in address order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simgpu/machine/decode/dual.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/decode/source_lines.h"
#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu {

class Disassembler;
namespace checks {
class FunctionEffects;
}
namespace compile {
class FunctionCode;
}

struct Function {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  // One after the other; a guard that reports running off the end comes last.
  std::vector<Instruction> instructions;
  // Per dword of code: its instruction, or `no_instruction` (the inside of a longer one).
  std::vector<std::uint32_t> index;
  std::deque<Dual> duals;  // the parts of those that are two in one
  // What is wrong with instructions that cannot run, by their place.
  std::map<const Instruction*, std::string> problems;
  std::span<const std::uint8_t> code;
  Disassembler* disassembler = nullptr;
  bool has_narrow_masks = false;  // its waves have 32 lanes, and masks one register
  bool fills_lds = false;         // some instruction loads from memory straight into LDS
  // Null without a line table. It counts from the code object's begin, which lies at `load_address`.
  SourceLines* lines = nullptr;
  std::uint64_t load_address = 0;
  // What the instructions touch; made when the function first runs under checks (checks/effects.h).
  mutable std::once_flag effects_once;
  mutable std::shared_ptr<const checks::FunctionEffects> effects;
  // Host code of its blocks; made when the function first runs under the compiled engine (compile/function_code.h).
  mutable std::once_flag compiled_once;
  mutable std::shared_ptr<compile::FunctionCode> compiled;

  static constexpr std::uint32_t no_instruction = ~0u;
  const Instruction* at(std::uint64_t place) const {
    const std::uint64_t dword = (place - address) / 4;
    if (place < address || dword >= index.size() || place % 4 != 0 || index[dword] == no_instruction) return nullptr;
    return &instructions[index[dword]];
  }
  // "v_add_f32_e32 v0, v1, s2"
  std::string text(const Instruction& instruction) const;
  // Nothing where the code object says nothing.
  std::optional<SourceLine> line(const Instruction& instruction) const;
  // "0200027e 0a0b0c0d"
  std::string encoding(const Instruction& instruction) const;
};

// Where code ends that starts at the beginning of `code` and has no symbol: behind the first end or jump that no branch
// before it leads beyond. Places that a branch reaches later are functions of their own.
std::uint64_t reachable_bytes(std::span<const std::uint8_t> code, std::uint64_t address, Disassembler& disassembler,
                              const Registry& registry);

// Decodes everything in `code`. Bytes that are no instruction, unknown mnemonics and operands that are not understood
// become instructions that report themselves when a wave reaches them.
std::unique_ptr<Function> decode_function(std::string name, std::span<const std::uint8_t> code, std::uint64_t address,
                                          Disassembler& disassembler, const Registry& registry);

}  // namespace wavejit::simgpu
