// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which handler executes a mnemonic, and what is known of it (record.h). Filled once per target by the folders that
// know the semantics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "isa/instruction_set.h"
#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu {

// Called once per decoded instruction: chooses the handler for these operands and modifiers, may fill `payload` and
// may rewrite constants (`Operand::lanes`). Null: this combination is not supported, which is an error naming the
// instruction.
using Select = Handler (*)(Instruction&);

class Registry {
 public:
  explicit Registry(const targets::Target& target);

  // A mnemonic without encoding suffix. Registering one twice is a programming error: it aborts, at the first use of
  // the library. Names are CDNA's: for RDNA4 they are translated, and left out where it has nothing that behaves so.
  void add(std::string_view mnemonic, Handler handler, const Record& record);
  void add_select(std::string_view mnemonic, Select select, const Record& record);
  // Names as the target has them.
  void add_own(std::string_view mnemonic, Handler handler, const Record& record);
  void add_own_select(std::string_view mnemonic, Select select, const Record& record);

  struct Entry {
    Handler handler = nullptr;
    Select select = nullptr;
    Record record;
    std::uint16_t id = 0;
    std::string_view mnemonic;  // lives as long as the registry
  };
  const Entry* find(std::string_view mnemonic) const;
  const targets::Target& target() const { return *target_; }
  isa::InstructionSet instruction_set() const { return instruction_set_; }
  std::size_t size() const { return entries_.size(); }
  // Every mnemonic known, sorted.
  std::vector<std::string_view> mnemonics() const;

 private:
  Entry& insert(std::string_view mnemonic, const Record& record);

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  const targets::Target* target_;
  isa::InstructionSet instruction_set_;
};

// The folders that register instructions. Scalar, control and memory instructions live in scalar/ and memory/; vector
// and matrix instructions are declared in vector/vector.h and matrix/matrix.h.
void register_scalar(Registry& registry);
void register_control(Registry& registry);
void register_memory(Registry& registry);
// Instructions that only RDNA4 has, from the same folders.
void register_rdna4_scalar(Registry& registry);
void register_rdna4_control(Registry& registry);

}  // namespace wavejit::simgpu
