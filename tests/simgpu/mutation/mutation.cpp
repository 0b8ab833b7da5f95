// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mutation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <format>
#include <optional>
#include <span>

#include "analysis/kernel_code.h"
#include "simgpu/machine/decode/dual.h"

namespace wavejit::tests {
namespace {

using simgpu::Instruction;

constexpr std::uint32_t s_nop_0 = 0xbf800000;
// s_waitcnt of gfx9: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8 (CDNA3 ISA, S_WAITCNT).
constexpr std::uint32_t most_vector = 63;
constexpr std::uint32_t most_local = 15;
constexpr std::uint32_t vector_of(std::uint32_t word) { return (word & 0xf) | ((word >> 10) & 0x30); }
constexpr std::uint32_t local_of(std::uint32_t word) { return (word >> 8) & 0xf; }
constexpr std::uint32_t with_vector(std::uint32_t word, std::uint32_t count) {
  return (word & ~0xc00fU) | (count & 0xf) | ((count & 0x30) << 10);
}
constexpr std::uint32_t with_local(std::uint32_t word, std::uint32_t count) { return (word & ~0xf00U) | (count << 8); }

// RDNA4 waits for one counter, or for two in one word: what memory brings, or is given, and LDS (RDNA4 ISA, S_WAIT_…).
struct SplitWait {
  std::string_view name;
  bool is_local;
  std::uint32_t most;
};
constexpr SplitWait split_waits[] = {{"s_wait_loadcnt", false, 63},
                                     {"s_wait_storecnt", false, 63},
                                     {"s_wait_dscnt", true, 63},
                                     {"s_wait_kmcnt", true, 31}};
constexpr std::uint32_t most_of_two = 63;  // loadcnt or storecnt in bits 13:8, dscnt in 5:0
bool waits_for_two(std::string_view name) { return name == "s_wait_loadcnt_dscnt" || name == "s_wait_storecnt_dscnt"; }

// Two vector instructions in one word of RDNA4 (RDNA4 ISA, "VOPD"), of which a select goes alone: it becomes a move of
// its register to itself, and the other half stays as it is.
struct Half {
  unsigned opcode_at;  // lowest bit in the first dword
  unsigned opcode_bits;
  std::size_t source_word;  // the dword with the first source in bits 8:0, the second behind it
};
constexpr Half first_half = {.opcode_at = 22, .opcode_bits = 0xf, .source_word = 0};
constexpr Half second_half = {.opcode_at = 17, .opcode_bits = 0x1f, .source_word = 1};
constexpr std::uint32_t dual_mov = 8;
constexpr std::uint32_t first_source = 0x1ff;
constexpr std::uint32_t both_sources = 0x1ffff;
constexpr std::uint32_t source_vector = 256;  // v0
constexpr std::uint32_t source_literal = 255;
constexpr std::string_view between_halves = " :: ";
bool is_select(const Instruction& instruction) { return instruction.mnemonic.starts_with("v_cndmask"); }
// Theirs stands behind the words, and no source says so.
bool has_constant(const Instruction& half) { return half.mnemonic == "v_fmaak_f32" || half.mnemonic == "v_fmamk_f32"; }

// Instructions that decide which lanes, keys or rows count: lane masks, selects by them, and clamped ranges.
bool is_mask(const Instruction& instruction) {
  const std::string_view name = instruction.mnemonic;
  if (is_select(instruction) || name.starts_with("v_cmp")) return true;
  if (name.starts_with("s_min") || name.starts_with("s_max") || name.starts_with("s_cselect")) return true;
  if (name.contains("saveexec") || name.contains("wrexec")) return true;
  return instruction.instruction_class == simgpu::InstructionClass::scalar && instruction.destination_count != 0 &&
         instruction.destination[0].is_scalar() && instruction.destination[0].index == simgpu::sgpr_exec;
}

// The addition to what the s_getpc_b64 at this place gave; null: none. RDNA4 cuts the program counter to its 48 bits
// before, and waits for it.
const Instruction* addition_behind(std::span<const Instruction> instructions, std::size_t getpc) {
  constexpr std::string_view between[] = {"s_sext_i32_i16", "s_wait_alu", "s_delay_alu"};
  std::size_t i = getpc + 1;
  while (i < instructions.size() && std::ranges::contains(between, instructions[i].mnemonic)) ++i;
  if (i == instructions.size() || instructions[i].bytes != 8) return nullptr;
  const std::string_view name = instructions[i].mnemonic;
  return name == "s_add_u32" || name == "s_add_co_u32" ? &instructions[i] : nullptr;
}

// What both point to, as an offset in the function; nothing if they are other code. LLVM addresses constants so, which
// stand in a section of their own and stay where they are.
std::optional<std::int64_t> pointed_to(const std::uint8_t* function, const Instruction& getpc,
                                       const Instruction* addition) {
  if (addition == nullptr) return std::nullopt;
  std::int32_t distance = 0;
  std::memcpy(&distance, function + addition->offset_in_function + 4, sizeof distance);
  return std::int64_t{getpc.offset_in_function} + getpc.bytes + distance;
}

class Mutator {
 public:
  Mutator(const std::vector<std::byte>& code_object, const analysis::KernelCode& code, std::size_t place)
      : original_(code_object), code_(code), place_(place) {}

  std::vector<Mutation> all() {
    const std::span<const Instruction> instructions = code_.instructions();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      instruction_ = &instructions[i];
      next_ = i + 1 < instructions.size() ? &instructions[i + 1] : nullptr;
      mutate();
    }
    return std::move(mutations_);
  }

 private:
  void mutate() {
    const std::uint32_t word = instruction_->immediate;
    if (instruction_->mnemonic == "s_waitcnt") {
      const std::uint32_t vector = vector_of(word);
      const std::uint32_t local = local_of(word);
      const bool both = vector != most_vector && local != most_local;
      remove(Change::wait_removed);
      if (both) replace(Change::vector_wait_removed, with_vector(word, most_vector));
      if (both) replace(Change::local_wait_removed, with_local(word, most_local));
      if (vector + 1 < most_vector) replace(Change::vector_wait_looser, with_vector(word, vector + 1));
      if (local + 1 < most_local) replace(Change::local_wait_looser, with_local(word, local + 1));
    } else if (const auto* split = std::ranges::find(split_waits, instruction_->mnemonic, &SplitWait::name);
               split != std::ranges::end(split_waits)) {
      remove(Change::wait_removed);
      const Change looser = split->is_local ? Change::local_wait_looser : Change::vector_wait_looser;
      if (word + 1 < split->most) replace(looser, word + 1);
    } else if (waits_for_two(instruction_->mnemonic)) {
      const std::uint32_t vector = word >> 8;
      const std::uint32_t local = word & most_of_two;
      remove(Change::wait_removed);
      replace(Change::vector_wait_removed, (most_of_two << 8) | local);
      replace(Change::local_wait_removed, (vector << 8) | most_of_two);
      if (vector + 1 < most_of_two) replace(Change::vector_wait_looser, ((vector + 1) << 8) | local);
      if (local + 1 < most_of_two) replace(Change::local_wait_looser, word + 1);
    } else if (instruction_->mnemonic == "s_wait_alu") {
      remove(Change::wait_removed);
    } else if (instruction_->instruction_class == simgpu::InstructionClass::control &&
               instruction_->mnemonic.starts_with("s_barrier")) {  // RDNA4's are in two parts
      remove(Change::barrier_removed);
    } else if (instruction_->mnemonic == "v_nop") {
      remove(Change::nop_removed);
    } else if (instruction_->mnemonic == "s_nop") {
      remove(Change::nop_removed);
      if ((word & 0xf) != 0) replace(Change::nop_shorter, word - 1);
    } else if (instruction_->record->action == simgpu::Action::dual) {
      const simgpu::Dual& dual = simgpu::dual_of(*instruction_);
      if (is_select(dual.first)) remove_select(first_half, dual.first, dual.second);
      if (is_select(dual.second)) remove_select(second_half, dual.second, dual.first);
    } else if (is_mask(*instruction_)) {
      remove(Change::mask_removed);
    }
  }

  Mutation& add(Change change) {
    return mutations_.emplace_back(Mutation{.change = change,
                                            .offset = instruction_->offset_in_function,
                                            .instruction = code_.text(*instruction_),
                                            .next = next_ != nullptr ? std::string(next_->mnemonic) : "",
                                            .code_object = original_});
  }

  // The immediate of an instruction of one word.
  void replace(Change change, std::uint32_t immediate) {
    Mutation& mutation = add(change);
    const auto half = static_cast<std::uint16_t>(immediate);
    std::memcpy(mutation.code_object.data() + place_ + instruction_->offset_in_function, &half, sizeof half);
  }

  void remove(Change change) { cut(add(change), instruction_->offset_in_function, instruction_->bytes); }

  void remove_select(const Half& half, const Instruction& select, const Instruction& other) {
    Mutation& mutation = add(Change::mask_removed);
    const std::size_t middle = mutation.instruction.find(between_halves);
    mutation.instruction = half.source_word == first_half.source_word
                               ? mutation.instruction.substr(0, middle)
                               : mutation.instruction.substr(middle + between_halves.size());
    std::byte* place = mutation.code_object.data() + place_ + instruction_->offset_in_function;
    std::array<std::uint32_t, 2> words{};
    std::memcpy(words.data(), place, sizeof words);
    words[0] = (words[0] & ~(half.opcode_bits << half.opcode_at)) | (dual_mov << half.opcode_at);
    std::uint32_t& source = words[half.source_word];
    source = (source & ~both_sources) | (source_vector + select.destination[0].index);
    std::memcpy(place, words.data(), sizeof words);
    const std::size_t others_word = 1 - half.source_word;
    const bool keeps_constant = (words[others_word] & first_source) == source_literal || has_constant(other);
    if (instruction_->bytes > sizeof words && !keeps_constant)
      cut(mutation, instruction_->offset_in_function + sizeof words, instruction_->bytes - sizeof words);
  }

  // What follows moves up.
  void cut(Mutation& mutation, std::uint32_t gone, std::uint32_t bytes) const {
    std::byte* function = mutation.code_object.data() + place_;
    // Branches first, while they stand where they stood. Their distance counts words from the next instruction.
    for (const Instruction& branch : code_.instructions()) {
      if (branch.target == nullptr) continue;
      const std::uint32_t from = branch.offset_in_function + branch.bytes;
      const std::uint32_t to = branch.target->offset_in_function;
      int distance = static_cast<std::int16_t>(branch.immediate);
      if (from <= gone && gone < to) distance -= static_cast<int>(bytes / 4);
      if (to <= gone && gone < from) distance += static_cast<int>(bytes / 4);
      const auto half = static_cast<std::uint16_t>(distance);
      std::memcpy(function + branch.offset_in_function, &half, sizeof half);
    }
    const std::span<const Instruction> all = code_.instructions();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].mnemonic != "s_getpc_b64" || all[i].offset_in_function < gone) continue;
      std::byte* literal = function + addition_behind(all, i)->offset_in_function + 4;
      std::uint32_t distance = 0;
      std::memcpy(&distance, literal, sizeof distance);
      distance += bytes;
      std::memcpy(literal, &distance, sizeof distance);
    }
    const Instruction& last = code_.instructions().back();
    const std::uint32_t end = last.offset_in_function + last.bytes;
    std::memmove(function + gone, function + gone + bytes, end - gone - bytes);
    for (std::uint32_t at = end - bytes; at < end; at += 4) std::memcpy(function + at, &s_nop_0, sizeof s_nop_0);
  }

  const std::vector<std::byte>& original_;
  const analysis::KernelCode& code_;
  std::size_t place_;  // of the function in the code object
  const Instruction* instruction_ = nullptr;
  const Instruction* next_ = nullptr;
  std::vector<Mutation> mutations_;
};

}  // namespace

std::string_view to_text(Change change) {
  constexpr std::array<std::string_view, 9> names = {"wait_removed",       "vector_wait_removed", "local_wait_removed",
                                                     "vector_wait_looser", "local_wait_looser",   "barrier_removed",
                                                     "nop_removed",        "nop_shorter",         "mask_removed"};
  return names[static_cast<std::size_t>(change)];
}

std::string Mutation::name() const {
  // Where masks were removed, registers say nothing that lasts.
  const std::string_view shown = change == Change::mask_removed
                                     ? std::string_view(instruction).substr(0, instruction.find(' '))
                                     : std::string_view(instruction);
  return std::format("{} {} | {}", to_text(change), shown, next);
}

std::expected<std::vector<Mutation>, std::string> mutations_of(const std::vector<std::byte>& code_object) {
  const auto code = analysis::KernelCode::read(code_object);
  if (!code) return std::unexpected(code.error());
  const std::span<const std::uint8_t> bytes = code->instructions().front().function->code;
  const auto* first = reinterpret_cast<const std::uint8_t*>(code_object.data());
  const auto* found = std::search(first, first + code_object.size(), bytes.begin(), bytes.end());
  if (found == first + code_object.size()) return std::unexpected("the function's bytes are not in the code object");
  const std::span<const Instruction> all = code->instructions();
  const std::int64_t end = all.back().offset_in_function + all.back().bytes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool moves = all[i].mnemonic != "s_call_b64";
    if (all[i].mnemonic == "s_getpc_b64") {
      const auto target = pointed_to(bytes.data(), all[i], addition_behind(all, i));
      moves = target && (*target < 0 || *target >= end);
    }
    // It would point elsewhere once something before it is gone.
    if (!moves) return std::unexpected("the kernel has " + code->text(all[i]) + ": its code cannot be moved");
  }
  return Mutator(code_object, *code, static_cast<std::size_t>(found - first)).all();
}

}  // namespace wavejit::tests
