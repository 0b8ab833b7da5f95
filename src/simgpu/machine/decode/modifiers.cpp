// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/modifiers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace wavejit::simgpu {

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

namespace {

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
constexpr std::array<Counted, 10> dpp_counted = {{
    {"row_shl", dpp_row_shl, 1, 15},
    {"row_shr", dpp_row_shr, 1, 15},
    {"row_ror", dpp_row_ror, 1, 15},
    {"row_newbcast", dpp_row_newbcast, 0, 15},
    {"row_share", dpp_row_newbcast, 0, 15},
    {"row_xmask", dpp_row_xmask, 0, 15},
    {"wave_shl", dpp_wave_shl - 1, 1, 1},
    {"wave_rol", dpp_wave_rol - 1, 1, 1},
    {"wave_shr", dpp_wave_shr - 1, 1, 1},
    {"wave_ror", dpp_wave_ror - 1, 1, 1},
}};

// "[7,6,5,4,3,2,1,0]": for each lane of eight the one it reads, three bits each.
bool read_dpp8(std::string_view value, Instruction& instruction) {
  constexpr std::size_t lanes = 8;
  if (value.size() != (2 * lanes) + 1 || value.front() != '[' || value.back() != ']') return false;
  std::uint64_t lanes_read = 0;
  for (std::size_t i = 0; i < lanes; ++i) {
    const char digit = value[1 + (2 * i)];
    if (digit < '0' || digit > '7') return false;
    lanes_read |= static_cast<std::uint64_t>(digit - '0') << (3 * i);
  }
  instruction.dpp_control = dpp_eight;
  instruction.immediate = static_cast<std::uint32_t>(lanes_read);
  instruction.bound_ctrl = true;  // lanes that are off give zero
  return true;
}

bool read_dpp(std::string_view name, std::string_view value, Instruction& instruction) {
  if (name == "dpp8") return read_dpp8(value, instruction);
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
  if (name == "fi") {
    instruction.fetches_inactive = *number != 0;
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

// RDNA4's cache policy: "th:TH_STORE_NT", "scope:SCOPE_DEV". Scopes are kept as CDNA's bits: sc0 the workgroup and what
// may spread over several compute units, sc1 the device, both the system. That an atomic returns is said by its
// destination.
bool read_policy(std::string_view name, std::string_view value, Instruction& instruction) {
  if (name == "th") {
    instruction.nt = value.ends_with("_NT");
    return value.starts_with("TH_") || parse_integer(value).has_value();
  }
  if (name != "scope") return false;
  if (value != "SCOPE_SE" && value != "SCOPE_DEV" && value != "SCOPE_SYS") return false;
  instruction.sc0 = value != "SCOPE_DEV";
  instruction.sc1 = value != "SCOPE_SE";
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

}  // namespace

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
  if (name == "byte_sel") {
    if (!number || *number < 0 || *number > 3) return false;
    instruction.byte_select = static_cast<std::uint8_t>(*number);
    return true;
  }
  return read_policy(name, value, instruction) || read_mask(name, value, instruction) ||
         read_sdwa(name, value, instruction) || read_dpp(name, value, instruction);
}

}  // namespace wavejit::simgpu
