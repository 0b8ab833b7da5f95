// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machine code to instructions, for the inspection and for people.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/compiled.h"
#include "targets/targets.h"

namespace wavejit::codegen {

struct MachineInstruction {
  std::uint64_t address = 0;
  std::string_view mnemonic;  // LLVM's, static storage: "ds_read_b128", "v_mfma_f32_32x32x16_bf16"
  std::uint32_t bytes = 0;
  bool ends_program = false;  // s_endpgm
  bool falls_through = true;  // false after s_endpgm and unconditional branches
  bool indirect = false;      // s_setpc, s_swappc, s_call: where control goes is not in the instruction
  bool lds_dma = false;       // a buffer or global load that writes LDS instead of registers
  std::optional<std::uint64_t> branch_target;
  std::string text;  // printed form; only when asked for
};

class Disassembler {
 public:
  static std::expected<Disassembler, Failure> create(const targets::Target& target);
  Disassembler(Disassembler&&) noexcept;
  ~Disassembler();

  // Every byte of `code` must decode; an encoding that the target does not have is a Failure with its address.
  std::expected<std::vector<MachineInstruction>, Failure> decode(std::span<const unsigned char> code,
                                                                 std::uint64_t address, bool with_text);

 private:
  struct Machinery;
  explicit Disassembler(std::unique_ptr<Machinery> machinery);
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace wavejit::codegen
