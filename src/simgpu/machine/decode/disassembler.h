// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM's machine code disassembler behind an interface without LLVM: bytes in, printed text and a few facts out.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::simgpu {

struct Disassembled {
  std::string mnemonic;       // as printed, with the encoding suffix: "v_add_f32_e32"
  std::string operands;       // what follows the mnemonic: "v0, v1, s2"
  unsigned bytes = 0;         // 0: these bytes are no instruction of the target
  unsigned destinations = 0;  // explicit results according to LLVM's instruction description
};

class Disassembler {
 public:
  // One per processor ("gfx950") and size of waves, created at the first call and kept. Null when LLVM does not know
  // it. `lanes`: the lanes of the waves that the code is for, if a processor has two kinds; 0: the processor's own.
  static Disassembler* for_processor(std::string_view processor, unsigned lanes = 0);

  // Whether the code is of waves of 32 lanes, whose masks are one scalar register.
  bool has_narrow_masks() const { return has_narrow_masks_; }

  // Thread-safe (one at a time).
  Disassembled decode(std::span<const std::uint8_t> code, std::uint64_t address);
  // "v_add_f32_e32 v0, v1, s2", for reports.
  std::string text(std::span<const std::uint8_t> code, std::uint64_t address);

  ~Disassembler();
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

 private:
  struct Llvm;
  explicit Disassembler(std::unique_ptr<Llvm> llvm);
  std::mutex mutex_;
  std::unique_ptr<Llvm> llvm_;
  bool has_narrow_masks_ = false;
};

}  // namespace wavejit::simgpu
