// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <optional>
#include <vector>

#include "simgpu/machine/decode/modifiers.h"

namespace wavejit::simgpu {
namespace {

using Result = std::expected<void, std::string>;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct NamedRegister {
  std::string_view name;
  std::uint16_t index;
  std::uint8_t dwords;
};
constexpr std::array<NamedRegister, 26> named_registers = {{
    {"vcc", sgpr_vcc, 2},
    {"vcc_lo", sgpr_vcc, 1},
    {"vcc_hi", sgpr_vcc + 1, 1},
    {"exec", sgpr_exec, 2},
    {"exec_lo", sgpr_exec, 1},
    {"exec_hi", sgpr_exec + 1, 1},
    {"m0", sgpr_m0, 1},
    {"flat_scratch", sgpr_flat_scratch, 2},
    {"flat_scratch_lo", sgpr_flat_scratch, 1},
    {"flat_scratch_hi", sgpr_flat_scratch + 1, 1},
    {"xnack_mask", sgpr_xnack_mask, 2},
    {"xnack_mask_lo", sgpr_xnack_mask, 1},
    {"xnack_mask_hi", sgpr_xnack_mask + 1, 1},
    {"src_shared_base", source_shared_base, 1},
    {"src_shared_limit", source_shared_limit, 1},
    {"src_private_base", source_private_base, 1},
    {"src_private_limit", source_private_limit, 1},
    {"src_vccz", source_vccz, 1},
    {"src_execz", source_execz, 1},
    {"src_scc", source_scc, 1},
    {"vccz", source_vccz, 1},
    {"execz", source_execz, 1},
    {"scc", source_scc, 1},
    {"null", source_null, 1},
    {"shared_base", source_shared_base, 1},
    {"private_base", source_private_base, 1},
}};

// "v3", "v[0:1]", "ttmp[4:7]": a register of the file that starts with `prefix`.
bool read_range(std::string_view text, std::string_view prefix, unsigned base, unsigned limit, OperandKind kind,
                Operand& operand) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    const std::size_t colon = text.find(':');
    const auto low = parse_integer(text.substr(0, colon));
    const auto high = colon == std::string_view::npos ? low : parse_integer(text.substr(colon + 1));
    if (!low || !high) return false;
    first = *low;
    last = *high;
  } else {
    const auto value = parse_integer(text);
    if (!value || text.starts_with('-')) return false;
    first = last = *value;
  }
  if (first < 0 || last < first || last >= static_cast<std::int64_t>(limit)) return false;
  operand.kind = kind;
  operand.index = static_cast<std::uint16_t>(base + first);
  operand.dwords = static_cast<std::uint8_t>(last - first + 1);
  return true;
}

bool read_register(std::string_view text, Operand& operand) {
  for (const NamedRegister& named : named_registers) {
    if (text != named.name) continue;
    operand.kind = OperandKind::scalar;
    operand.index = named.index;
    operand.dwords = named.dwords;
    return true;
  }
  return read_range(text, "v", 0, 256, OperandKind::vector, operand) ||
         read_range(text, "a", accumulation_base, 256, OperandKind::vector, operand) ||
         read_range(text, "s", 0, sgpr_vcc, OperandKind::scalar, operand) ||
         read_range(text, "ttmp", sgpr_ttmp0, 16, OperandKind::scalar, operand);
}

// "v3.l", "v3.h": half of a register, as RDNA4 names 16-bit operands.
bool read_half(std::string_view text, Operand& operand) {
  const bool low = text.ends_with(".l");
  if (!low && !text.ends_with(".h")) return false;
  operand.select = low ? SubDword::word0 : SubDword::word1;
  return read_register(text.substr(0, text.size() - 2), operand);
}

bool read_number(std::string_view text, Operand& operand) {
  bool forced_literal = false;
  if (text.starts_with("lit(") && text.ends_with(')')) {
    forced_literal = true;
    text = text.substr(4, text.size() - 5);
  }
  if (const auto value = parse_integer(text)) {
    operand.bits = static_cast<std::uint32_t>(*value);
    const bool is_hexadecimal = text.contains("0x");
    operand.kind = !forced_literal && !is_hexadecimal && *value >= -16 && *value <= 64 ? OperandKind::inline_integer
                                                                                       : OperandKind::literal;
    operand.dwords = 1;
    operand.lanes = broadcast_constant(operand.bits);
    return true;
  }
  if (text.find_first_not_of("-0123456789.") != std::string_view::npos || !text.contains('.')) return false;
  const float value = std::strtof(std::string(text).c_str(), nullptr);
  operand.bits = std::bit_cast<std::uint32_t>(value);
  operand.kind = OperandKind::inline_float;
  operand.dwords = 1;
  operand.lanes = broadcast_constant(operand.bits);
  return true;
}

bool read_operand(std::string_view text, Operand& operand) {
  if (text == "off") return true;
  if (read_register(text, operand) || read_number(text, operand) || read_half(text, operand)) return true;
  if (text.starts_with("sext(") && text.ends_with(')')) {
    operand.sign_extend = true;
    return read_operand(text.substr(5, text.size() - 6), operand);
  }
  if (text.starts_with("neg(") && text.ends_with(')')) {
    operand.negate = true;
    return read_operand(text.substr(4, text.size() - 5), operand);
  }
  if (text.starts_with('-')) {
    operand.negate = true;
    return read_operand(text.substr(1), operand);
  }
  if (text.size() > 2 && text.starts_with('|') && text.ends_with('|')) {
    operand.absolute = true;
    return read_operand(text.substr(1, text.size() - 2), operand);
  }
  return false;
}

// Splits at `separator` outside brackets and parentheses.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      parts.push_back(trimmed(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(trimmed(text.substr(start)));
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

// Words that stand for an encoded immediate: s_waitcnt's counters, hwreg(…), sendmsg(…), gpr_idx(…), what RDNA4 says of
// delays and dependencies.
bool is_immediate_word(std::string_view token) {
  constexpr std::array<std::string_view, 12> words = {"vmcnt(",    "lgkmcnt(", "expcnt(",  "hwreg(",
                                                      "sendmsg(",  "gpr_idx(", "swizzle(", "instid0(",
                                                      "instskip(", "instid1(", "depctr_",  "UC_VERSION"};
  return token == "|" || std::ranges::any_of(words, [&](std::string_view word) { return token.starts_with(word); });
}

}  // namespace

namespace {

// Halves of registers are what op_sel says of other targets' operands: a bit a source, bit 3 the destination.
void take_halves(Instruction& instruction) {
  const auto take = [&](Operand& operand, unsigned bit) {
    if (operand.select == SubDword::word1) instruction.op_sel |= static_cast<std::uint8_t>(1u << bit);
    operand.select = SubDword::dword;
  };
  constexpr unsigned of_destination = 3;
  // A second destination is the partner of an exchange, which other targets have as a source.
  take(instruction.destination[0], of_destination);
  take(instruction.destination[1], 0);
  for (unsigned i = 0; i < instruction.source_count; ++i) take(instruction.source[i], i);
}

}  // namespace

Result read_operands(std::string_view text, unsigned destinations, Instruction& instruction) {
  if (instruction.record->op_sel_hi_is_zero) instruction.op_sel_hi = 0;
  // The last comma-separated part carries the modifiers, and is nothing but modifiers when there are no operands.
  std::vector<Operand> operands;
  std::vector<std::string_view> modifiers;
  const std::vector<std::string_view> parts = split(text, ',');
  for (const std::string_view part : parts) {
    bool first = true;
    for (const std::string_view token : split(part, ' ')) {
      Operand operand;
      if (is_immediate_word(token)) {
        operand.kind = OperandKind::literal;
        operand.dwords = 1;
        operand.bits = instruction.immediate;
        if (first) operands.push_back(operand);
      } else if (first && read_operand(token, operand)) {
        operands.push_back(operand);
      } else {
        modifiers.push_back(token);
      }
      first = false;
    }
  }
  if (operands.size() < destinations || destinations > instruction.destination.size() ||
      operands.size() - destinations > instruction.source.size()) {
    return std::unexpected("operands '" + std::string(text) + "' are not understood");
  }
  instruction.destination_count = static_cast<std::uint8_t>(destinations);
  instruction.source_count = static_cast<std::uint8_t>(operands.size() - destinations);
  std::copy_n(operands.begin(), destinations, instruction.destination.begin());
  std::copy(operands.begin() + destinations, operands.end(), instruction.source.begin());
  take_halves(instruction);
  for (const std::string_view token : modifiers) {
    if (!read_modifier(token, instruction)) {
      return std::unexpected("modifier or operand '" + std::string(token) + "' is not understood");
    }
  }
  return {};
}

}  // namespace wavejit::simgpu
