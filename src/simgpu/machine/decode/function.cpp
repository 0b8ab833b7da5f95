// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/function.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <format>

#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/operands.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {
namespace {

void execute_problem(Wave& wave, const Instruction& instruction) {
  const auto found = instruction.function->problems.find(&instruction);
  fault(wave, instruction, found != instruction.function->problems.end() ? found->second : "not an instruction");
}

void execute_counted(Wave& wave, const Instruction& instruction) {
  ++wave.matrix_instructions;
  if (!wave.times_matrix) return instruction.inner(wave, instruction);
  const auto started = std::chrono::steady_clock::now();
  instruction.inner(wave, instruction);
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - started;
  wave.matrix_nanoseconds += static_cast<std::uint64_t>(taken.count());
}

// Between s_set_gpr_idx_on and _off, M0[7:0] is added to the register numbers of the operands that M0[15:12] names
// (CDNA3 ISA, "VGPR indexing"). Compilers keep the pair in one basic block, so the region is known when decoding.
void execute_indexed(Wave& wave, const Instruction& instruction) {
  const std::uint32_t index = wave.m0() & 0xff;
  const std::uint32_t enabled = (wave.m0() >> 12) & 0xf;
  constexpr std::uint32_t destination_bit = 8;
  Instruction moved = instruction;
  const auto move = [&](Operand& operand) {
    if (!operand.is_vector()) return true;
    const unsigned file_end = operand.index < accumulation_base ? accumulation_base : 2 * accumulation_base;
    operand.index = static_cast<std::uint16_t>(operand.index + index);
    return operand.index + unsigned{operand.dwords} <= file_end;
  };
  bool inside = true;
  for (unsigned i = 0; i < 3; ++i) {
    if (((enabled >> i) & 1) != 0) inside = inside && move(moved.source[i]);
  }
  if ((enabled & destination_bit) != 0) inside = inside && move(moved.destination[0]);
  if (!inside) return fault(wave, instruction, std::format("M0 index {} leaves the vector registers", index));
  moved.inner(wave, moved);
}

// "v_add_f32_e32" → "v_add_f32" and its encoding.
std::string_view base_mnemonic(std::string_view mnemonic, Encoding& encoding) {
  struct Suffix {
    std::string_view text;
    Encoding encoding;
  };
  for (const Suffix& suffix : {Suffix{"_e32", Encoding::e32}, Suffix{"_e64", Encoding::e64},
                               Suffix{"_dpp", Encoding::dpp}, Suffix{"_sdwa", Encoding::sdwa}}) {
    if (!mnemonic.ends_with(suffix.text)) continue;
    encoding = suffix.encoding;
    return mnemonic.substr(0, mnemonic.size() - suffix.text.size());
  }
  return mnemonic;
}
// RDNA4 moves lanes in its long encoding too: "v_add_f32_e64_dpp".
std::string_view plain_mnemonic(std::string_view mnemonic, Encoding& encoding) {
  const std::string_view base = base_mnemonic(mnemonic, encoding);
  Encoding longer = encoding;
  return encoding == Encoding::dpp ? base_mnemonic(base, longer) : base;
}

// To a place that the instruction names as a distance.
bool is_branch(const Instruction& instruction) {
  switch (instruction.record->action) {
    case Action::branch:
    case Action::branch_scc:
    case Action::branch_vcc:
    case Action::branch_exec:
    case Action::call:
      return true;
    default:
      return false;
  }
}

// What stands in the way of running it; empty when nothing does.
std::string prepare(Instruction& instruction, const Disassembled& decoded, const Registry& registry,
                    std::deque<Dual>& duals) {
  if (is_dual(decoded.mnemonic)) {
    const auto read = read_dual(decoded.mnemonic, decoded.operands, registry, duals, instruction);
    return read ? std::string() : read.error();
  }
  const std::string_view base = plain_mnemonic(decoded.mnemonic, instruction.encoding);
  const Registry::Entry* entry = registry.find(base);
  if (entry == nullptr) return "the simulated GPU does not know this instruction";
  instruction.mnemonic = entry->mnemonic;
  instruction.id = entry->id;
  instruction.record = &entry->record;
  instruction.instruction_class = entry->record.instruction_class;
  const unsigned destinations =
      entry->record.destinations != 0 ? entry->record.destinations : unsigned{decoded.destinations};
  if (auto read = read_operands(decoded.operands, destinations, instruction); !read) return read.error();
  instruction.execute = entry->select != nullptr ? entry->select(instruction) : entry->handler;
  if (instruction.execute == nullptr) {
    return "the simulated GPU does not know this instruction with these operands or modifiers";
  }
  if (entry->record.instruction_class == InstructionClass::matrix) {
    instruction.inner = instruction.execute;
    instruction.execute = execute_counted;
  }
  return {};
}

}  // namespace

std::string Function::text(const Instruction& instruction) const {
  const std::uint64_t offset = instruction.address - address;
  if (disassembler == nullptr || offset >= code.size()) return {};
  return disassembler->text(code.subspan(offset), instruction.address);
}

std::optional<SourceLine> Function::line(const Instruction& instruction) const {
  return lines == nullptr ? std::nullopt : lines->at(instruction.address - load_address);
}

std::string Function::encoding(const Instruction& instruction) const {
  std::string words;
  const std::uint64_t offset = instruction.address - address;
  for (std::uint64_t at = offset; at + 4 <= code.size() && at < offset + instruction.bytes; at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, code.data() + at, 4);
    if (!words.empty()) words += ' ';
    words += std::format("{:08x}", word);
  }
  return words;
}

std::uint64_t reachable_bytes(std::span<const std::uint8_t> code, std::uint64_t address, Disassembler& disassembler,
                              const Registry& registry) {
  std::uint64_t offset = 0;
  std::uint64_t furthest = 0;
  std::deque<Dual> duals;
  while (offset + 4 <= code.size()) {
    const Disassembled decoded = disassembler.decode(code.subspan(offset), address + offset);
    if (decoded.bytes == 0) {
      offset += 4;
      if (offset > furthest) return offset;
      continue;
    }
    Instruction instruction;
    std::uint16_t distance = 0;
    std::memcpy(&distance, code.data() + offset, sizeof distance);
    static_cast<void>(prepare(instruction, decoded, registry, duals));
    offset += decoded.bytes;
    if (is_branch(instruction)) {
      const std::int64_t to =
          static_cast<std::int64_t>(offset) + (static_cast<std::int16_t>(distance) * std::int64_t{4});
      if (to > 0) furthest = std::max(furthest, static_cast<std::uint64_t>(to));
    }
    const Action action = instruction.record->action;
    const bool goes_on = action != Action::end && action != Action::branch && action != Action::jump;
    if (!goes_on && offset > furthest) return offset;
  }
  return code.size();
}

std::unique_ptr<Function> decode_function(std::string name, std::span<const std::uint8_t> code, std::uint64_t address,
                                          Disassembler& disassembler, const Registry& registry) {
  auto function = std::make_unique<Function>();
  function->name = std::move(name);
  function->address = address;
  function->bytes = code.size();
  function->code = code;
  function->disassembler = &disassembler;
  function->has_narrow_masks = disassembler.has_narrow_masks();
  function->index.assign(code.size() / 4, Function::no_instruction);
  function->instructions.reserve((code.size() / 4) + 1);  // never moves: branches and problems point into it

  std::uint64_t offset = 0;
  bool indexed = false;
  while (offset + 4 <= code.size()) {
    Instruction& instruction = function->instructions.emplace_back();
    instruction.function = function.get();
    instruction.address = address + offset;
    instruction.offset_in_function = static_cast<std::uint32_t>(offset);
    std::uint32_t first_word = 0;
    std::memcpy(&first_word, code.data() + offset, 4);
    instruction.immediate = first_word & 0xffff;
    const Disassembled decoded = disassembler.decode(code.subspan(offset), instruction.address);
    instruction.bytes = static_cast<std::uint8_t>(decoded.bytes == 0 ? 4 : decoded.bytes);
    const std::string problem = decoded.bytes == 0 ? "these bytes are no instruction of the target"
                                                   : prepare(instruction, decoded, registry, function->duals);
    if (!problem.empty()) {
      instruction.execute = execute_problem;
      function->problems[&instruction] = problem;
    } else if (indexed && instruction.instruction_class == InstructionClass::vector) {
      instruction.inner = instruction.execute;
      instruction.execute = execute_indexed;
    }
    function->fills_lds = function->fills_lds || instruction.lds || instruction.record->to_lds;
    if (instruction.record->action == Action::index_on) indexed = true;
    if (instruction.record->action == Action::index_off) indexed = false;
    function->index[offset / 4] = static_cast<std::uint32_t>(function->instructions.size() - 1);
    offset += instruction.bytes;
  }

  Instruction& guard = function->instructions.emplace_back();
  guard.function = function.get();
  guard.address = address + offset;
  guard.offset_in_function = static_cast<std::uint32_t>(offset);
  guard.execute = execute_problem;
  function->problems[&guard] = "the wave ran off the end of the function";

  for (Instruction& instruction : function->instructions) {
    if (!is_branch(instruction)) continue;
    const std::int64_t distance = static_cast<std::int16_t>(instruction.immediate) * std::int64_t{4};
    instruction.target = function->at(instruction.address + 4 + static_cast<std::uint64_t>(distance));
  }
  return function;
}

}  // namespace wavejit::simgpu
