// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kernel_listing.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace wavejit::tools {

namespace {

struct Instruction {
  std::uint64_t offset = 0;
  std::string_view text;
  std::string_view mnemonic;
};

// "  1a40  s_barrier"; nothing for the first line, which names the kernel.
std::optional<Instruction> instruction_of(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  Instruction instruction;
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + line.size(), instruction.offset, 16);
  const auto after = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || !line.substr(after).starts_with("  ")) return std::nullopt;
  instruction.text = line.substr(after + 2);
  instruction.mnemonic = instruction.text.substr(0, instruction.text.find(' '));
  return instruction;
}

// What is counted between two barriers, in the order in which it is told.
struct Kind {
  std::string_view name;
  bool (*is)(const Instruction& instruction);
};
bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  for (const std::string_view beginning : beginnings)
    if (text.starts_with(beginning)) return true;
  return false;
}
bool is_load(const Instruction& one) { return starts_with_any(one.mnemonic, {"buffer_load", "global_load"}); }
bool goes_to_lds(const Instruction& one) {
  return one.text.ends_with(" lds") || one.text.contains(" lds ") || one.mnemonic.contains("_lds_");
}
constexpr std::array<Kind, 7> kinds = {{
    {"matrix", [](const Instruction& one) { return starts_with_any(one.mnemonic, {"v_mfma", "v_smfmac", "v_wmma"}); }},
    {"exp", [](const Instruction& one) { return one.mnemonic.starts_with("v_exp_"); }},
    {"LDS reads", [](const Instruction& one) { return starts_with_any(one.mnemonic, {"ds_read", "ds_load"}); }},
    {"LDS writes", [](const Instruction& one) { return starts_with_any(one.mnemonic, {"ds_write", "ds_store"}); }},
    {"loads to LDS", [](const Instruction& one) { return is_load(one) && goes_to_lds(one); }},
    {"loads", [](const Instruction& one) { return is_load(one) && !goes_to_lds(one); }},
    {"stores", [](const Instruction& one) { return starts_with_any(one.mnemonic, {"buffer_store", "global_store"}); }},
}};

// Where a jump back goes: "s_cbranch_scc1 65532" counts dwords from the instruction behind it, in 16 bits.
std::optional<std::uint64_t> jump_back(const Instruction& one) {
  if (!one.mnemonic.starts_with("s_branch") && !one.mnemonic.starts_with("s_cbranch")) return std::nullopt;
  const std::size_t at = one.text.find_last_of(' ');
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t dwords = 0;
  const char* begin = one.text.data() + at + 1;
  const char* end = one.text.data() + one.text.size();
  const auto [stop, error] = std::from_chars(begin, end, dwords);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (dwords >= 0x8000) dwords -= 0x10000;
  const std::int64_t target = static_cast<std::int64_t>(one.offset) + 4 + 4 * dwords;
  if (dwords >= 0 || target < 0) return std::nullopt;
  return static_cast<std::uint64_t>(target);
}

std::string_view margin_of(const Instruction& one) {
  if (one.mnemonic.starts_with("s_barrier")) return "BARRIER";
  if (one.mnemonic.starts_with("s_wait")) return "wait";
  if (one.mnemonic.starts_with("s_cbranch") || one.mnemonic.starts_with("s_branch")) return "jump";
  if (kinds[0].is(one)) return "matrix";
  return "";
}

// Since the barrier before.
class Stretch {
 public:
  void take(const Instruction& one) {
    ++instructions_;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if (kinds[i].is(one)) ++counts_[i];
  }
  std::string text() const {
    std::string text = fmt::format("{} instructions", instructions_);
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if (counts_[i] > 0) text += fmt::format(", {} {}", counts_[i], kinds[i].name);
    return text;
  }

 private:
  int instructions_ = 0;
  std::array<int, kinds.size()> counts_{};
};

}  // namespace

std::string kernel_listing(const std::string& disassembly) {
  std::vector<std::string> lines;
  std::istringstream stream(disassembly);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  std::map<std::uint64_t, std::uint64_t> loops;  // beginning, and the last jump back to it
  for (const std::string& line : lines) {
    const auto one = instruction_of(line);
    if (!one) continue;
    if (const auto target = jump_back(*one)) loops[*target] = one->offset;
  }
  std::string text;
  int barriers = 0;
  Stretch stretch;
  for (const std::string& line : lines) {
    const auto one = instruction_of(line);
    if (!one) {
      text += line + "\n";
      continue;
    }
    if (const auto loop = loops.find(one->offset); loop != loops.end())
      text += fmt::format("-- a loop begins, {:x} jumps back to here\n", loop->second);
    text += fmt::format("{:>7} {}\n", margin_of(*one), line);
    stretch.take(*one);
    if (margin_of(*one) != "BARRIER") continue;
    text += fmt::format("-- barrier {}; up to it: {}\n", ++barriers, stretch.text());
    stretch = {};
  }
  return text + fmt::format("-- the end; up to it: {}\n", stretch.text());
}

}  // namespace wavejit::tools
