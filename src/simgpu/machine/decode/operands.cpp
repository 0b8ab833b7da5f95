// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

namespace wavejit::simgpu {
namespace {

using Result = std::expected<void, std::string>;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  bool negative = false;
  if (text.starts_with('-')) {
    negative = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
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
         read_range(text, "s", 0, sgpr_flat_scratch, OperandKind::scalar, operand) ||
         read_range(text, "ttmp", sgpr_ttmp0, 16, OperandKind::scalar, operand);
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
  if (read_register(text, operand) || read_number(text, operand)) return true;
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

// "[1,0,1]" → one bit an entry; the count of entries in `count`.
std::optional<std::uint8_t> read_bits(std::string_view text, unsigned& count) {
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  std::uint8_t bits = 0;
  count = 0;
  for (std::size_t at = 1; at + 1 < text.size(); at += 2) {
    if ((text[at] != '0' && text[at] != '1') || (text[at + 1] != ',' && at + 2 != text.size())) return std::nullopt;
    if (count >= 5) return std::nullopt;
    if (text[at] == '1') bits |= static_cast<std::uint8_t>(1u << count);
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(bits);
}

std::optional<SubDword> read_select(std::string_view text) {
  constexpr std::array<std::string_view, 7> names = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                                     "WORD_0", "WORD_1", "DWORD"};
  const auto* found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<SubDword>(found - names.begin());
}

struct Flag {
  std::string_view name;
  bool Instruction::* member;
};
constexpr std::array<Flag, 9> flags = {{
    {"offen", &Instruction::offen},
    {"idxen", &Instruction::idxen},
    {"sc0", &Instruction::sc0},
    {"glc", &Instruction::sc0},  // scalar memory keeps the old word
    {"sc1", &Instruction::sc1},
    {"nt", &Instruction::nt},
    {"lds", &Instruction::lds},
    {"gds", &Instruction::gds},
    {"clamp", &Instruction::clamp},
}};

struct Counted {
  std::string_view name;
  std::uint16_t control;
  std::int64_t lowest;
  std::int64_t highest;
};
constexpr std::array<Counted, 8> dpp_counted = {{
    {"row_shl", dpp_row_shl, 1, 15},
    {"row_shr", dpp_row_shr, 1, 15},
    {"row_ror", dpp_row_ror, 1, 15},
    {"row_newbcast", dpp_row_newbcast, 0, 15},
    {"wave_shl", dpp_wave_shl - 1, 1, 1},
    {"wave_rol", dpp_wave_rol - 1, 1, 1},
    {"wave_shr", dpp_wave_shr - 1, 1, 1},
    {"wave_ror", dpp_wave_ror - 1, 1, 1},
}};

bool read_dpp(std::string_view name, std::string_view value, Instruction& instruction) {
  if (name == "quad_perm") {
    if (value.size() != 9 || value.front() != '[' || value.back() != ']') return false;
    std::uint16_t control = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const char digit = value[1 + (2 * i)];
      if (digit < '0' || digit > '3') return false;
      control |= static_cast<std::uint16_t>((digit - '0') << (2 * i));
    }
    instruction.dpp_control = control;
    return true;
  }
  const auto number = parse_integer(value);
  if (!number) return false;
  for (const Counted& counted : dpp_counted) {
    if (name != counted.name) continue;
    if (*number < counted.lowest || *number > counted.highest) return false;
    instruction.dpp_control = static_cast<std::uint16_t>(counted.control + *number);
    return true;
  }
  if (name == "row_bcast" && (*number == 15 || *number == 31)) {
    instruction.dpp_control = *number == 15 ? dpp_row_bcast15 : dpp_row_bcast31;
    return true;
  }
  if ((name == "row_mask" || name == "bank_mask") && *number >= 0 && *number <= 15) {
    (name == "row_mask" ? instruction.row_mask : instruction.bank_mask) = static_cast<std::uint8_t>(*number);
    return true;
  }
  if (name == "bound_ctrl") {
    // Both spellings (":0" of old assemblers, ":1") mean the bit is set.
    instruction.bound_ctrl = true;
    return true;
  }
  return false;
}

bool read_mask(std::string_view name, std::string_view value, Instruction& instruction) {
  unsigned count = 0;
  const auto bits = read_bits(value, count);
  if (!bits) return false;
  if (name == "op_sel") {
    // One entry more than there are sources is the destination's half: bit 3.
    if (count == instruction.source_count + 1u && count <= 4) {
      const unsigned last = count - 1;
      instruction.op_sel = static_cast<std::uint8_t>((*bits & ((1u << last) - 1)) | (((*bits >> last) & 1u) << 3));
    } else {
      instruction.op_sel = *bits;
    }
  } else if (name == "op_sel_hi") {
    instruction.op_sel_hi = *bits;
  } else if (name == "neg_lo" || name == "neg") {
    instruction.neg_lo = *bits;
  } else if (name == "neg_hi") {
    instruction.neg_hi = *bits;
  } else {
    return false;
  }
  return true;
}

bool read_sdwa(std::string_view name, std::string_view value, Instruction& instruction) {
  if (name == "dst_unused") {
    if (value == "UNUSED_PAD") {
      instruction.destination_unused = UnusedBits::pad;
    } else if (value == "UNUSED_SEXT") {
      instruction.destination_unused = UnusedBits::sign_extend;
    } else if (value == "UNUSED_PRESERVE") {
      instruction.destination_unused = UnusedBits::preserve;
    } else {
      return false;
    }
    return true;
  }
  const auto select = read_select(value);
  if (!select) return false;
  if (name == "dst_sel") {
    instruction.destination_select = *select;
  } else if (name == "src0_sel") {
    instruction.source[0].select = *select;
  } else if (name == "src1_sel") {
    instruction.source[1].select = *select;
  } else {
    return false;
  }
  return true;
}

bool read_output_modifier(std::string_view token, Instruction& instruction) {
  if (token == "mul:2") {
    instruction.output_modifier = OutputModifier::multiply2;
  } else if (token == "mul:4") {
    instruction.output_modifier = OutputModifier::multiply4;
  } else if (token == "div:2") {
    instruction.output_modifier = OutputModifier::divide2;
  } else {
    return false;
  }
  return true;
}

bool read_modifier(std::string_view token, Instruction& instruction) {
  for (const Flag& flag : flags) {
    if (token != flag.name) continue;
    instruction.*flag.member = true;
    return true;
  }
  if (token == "row_mirror" || token == "row_half_mirror") {
    instruction.dpp_control = token == "row_mirror" ? dpp_row_mirror : dpp_row_half_mirror;
    return true;
  }
  if (read_output_modifier(token, instruction)) return true;
  const std::size_t colon = token.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = token.substr(0, colon);
  const std::string_view value = token.substr(colon + 1);
  if (name == "format") return true;  // MTBUF: the encoded field is read from the bytes
  if (name == "offset" && value.starts_with("swizzle(")) return true;  // ds_swizzle: likewise
  const auto number = parse_integer(value);
  if (name == "offset" || name == "offset0" || name == "offset1") {
    if (!number) return false;
    (name == "offset1" ? instruction.offset1 : instruction.offset) = static_cast<std::int32_t>(*number);
    return true;
  }
  if (name == "cbsz" || name == "abid" || name == "blgp" || name == "bitop3") {
    if (!number || *number < 0 || *number > 255) return false;
    const auto field = static_cast<std::uint8_t>(*number);
    (name == "cbsz"   ? instruction.cbsz
     : name == "abid" ? instruction.abid
     : name == "blgp" ? instruction.blgp
                      : instruction.truth_table) = field;
    return true;
  }
  return read_mask(name, value, instruction) || read_sdwa(name, value, instruction) ||
         read_dpp(name, value, instruction);
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

// Words that stand for an encoded immediate: s_waitcnt's counters, hwreg(…), sendmsg(…), gpr_idx(…).
bool is_immediate_word(std::string_view token) {
  constexpr std::array<std::string_view, 7> words = {"vmcnt(",   "lgkmcnt(", "expcnt(", "hwreg(",
                                                     "sendmsg(", "gpr_idx(", "swizzle("};
  return std::ranges::any_of(words, [&](std::string_view word) { return token.starts_with(word); });
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
  for (const std::string_view token : modifiers) {
    if (!read_modifier(token, instruction)) {
      return std::unexpected("modifier or operand '" + std::string(token) + "' is not understood");
    }
  }
  return {};
}

}  // namespace wavejit::simgpu
