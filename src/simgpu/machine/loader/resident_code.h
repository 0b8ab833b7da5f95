// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code that somebody else put into executable memory, as AMD's runtime does: kernels are known by the address of their
// descriptor, functions are decoded when first reached. Names come from the code object's image, where one is
// found, or from what of it was loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/loader/code.h"
#include "simgpu/machine/loader/code_object.h"
#include "targets/targets.h"

namespace wavejit::simgpu {

class Disassembler;

// The code object that was loaded around an address.
struct CodeImage {
  std::vector<std::byte> bytes;
  std::uint64_t load_address = 0;
};
using FindImage = std::function<std::optional<CodeImage>(std::uint64_t address)>;

struct ResidentKernel {
  std::array<std::byte, descriptor_bytes> bytes{};  // the descriptor as it stood in memory
  KernelInfo info;
  KernelDescriptor descriptor;
  std::uint64_t descriptor_address = 0;
  std::uint64_t entry = 0;  // the first instruction that hardware fetches
  // One of ROCr's or HIP's own, for copies and fills: nobody who runs a program under checks wrote it.
  bool is_of_runtime = false;
  // Whether such a kernel copies or fills. HIP has others, which wait for a value in memory.
  bool is_short = false;
};

// The code of one executable allocation. Thread-safe.
class ResidentCode final : public Code {
 public:
  ResidentCode(std::uint64_t base, std::uint64_t bytes, const targets::Target& target, const Registry& registry,
               FindImage find_image);
  ~ResidentCode() override;

  // The kernel whose descriptor stands at this address now. The text says what is wrong with it.
  std::expected<std::shared_ptr<const ResidentKernel>, std::string> kernel_at(std::uint64_t descriptor_address);
  const Instruction* instruction_at(std::uint64_t address) override;
  std::uint64_t base() const override { return base_; }
  std::uint64_t bytes() const { return bytes_; }

  // The memory may have changed: functions whose bytes did are decoded again at the next visit. Launches that still run
  // the old ones go on with them.
  void invalidate();

 private:
  struct Decoded {
    std::vector<std::uint8_t> code;  // as it was
    std::unique_ptr<Function> function;
  };
  void look_for_image();
  // What is wrong with the size of a kernel's waves; empty: its code is decoded for it.
  std::string take_lanes(const KernelDescriptor& descriptor);
  std::unique_ptr<Decoded> decode(std::uint64_t address) const;

  std::uint64_t base_;
  std::uint64_t bytes_;
  const targets::Target* target_;
  Disassembler* disassembler_;  // of the target's own waves, until a kernel says which it has
  unsigned lanes_ = 0;          // of the kernels; 0: none was asked for yet
  const Registry* registry_;
  FindImage find_image_;

  std::mutex mutex_;
  bool looked_for_image_ = false;
  std::optional<CodeObject> object_;  // what the image says; nothing without one
  std::uint64_t load_address_ = 0;
  std::unique_ptr<SourceLines> lines_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const ResidentKernel>> kernels_;
  std::vector<std::unique_ptr<Decoded>> functions_;  // sorted by address
  std::vector<std::unique_ptr<Decoded>> retired_;    // kept for launches that run them
};

}  // namespace wavejit::simgpu
