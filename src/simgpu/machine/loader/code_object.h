// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an AMDGPU code object says, read from its bytes with every offset and size checked. Nothing is loaded here.
// Formats: ELF-64 gABI; LLVM's "User Guide for AMDGPU Backend", sections "Code Object", "Kernel Descriptor", "Code
// Object Metadata".
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simgpu/machine/loader/kernel_info.h"
#include "targets/targets.h"

namespace wavejit::simgpu {

struct Segment {
  std::uint64_t file_offset = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t address = 0;  // relative to the load address
  std::uint64_t memory_bytes = 0;
  bool executable = false;
  bool writable = false;
};

struct Symbol {
  std::string name;
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;
  std::uint8_t type = 0;     // STT_OBJECT, STT_FUNC, …
  std::uint8_t binding = 0;  // STB_LOCAL, STB_GLOBAL, STB_WEAK
  bool defined = false;
};

struct Relocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;  // in dynamic_symbols
  std::int64_t addend = 0;
};

// The 64 bytes of a kernel descriptor, taken apart.
struct KernelDescriptor {
  std::uint32_t group_segment_fixed_size = 0;
  std::uint32_t private_segment_fixed_size = 0;
  std::uint32_t kernarg_size = 0;
  std::int64_t entry_offset = 0;
  std::uint32_t resource1 = 0;
  std::uint32_t resource2 = 0;
  std::uint32_t resource3 = 0;
  std::uint16_t properties = 0;
  std::uint16_t kernarg_preload = 0;

  // compute_pgm_rsrc1
  unsigned vgprs() const { return ((resource1 & 0x3f) + 1) * vgpr_unit; }
  // Rounding and denormal fields, FP16_OVFL.
  std::uint32_t float_mode() const { return ((resource1 >> 12) & 0xff) | (((resource1 >> 26) & 1) << 23); }
  // MODE as the wave starts with it: rounding and denormal fields, DX10_CLAMP, IEEE.
  std::uint32_t initial_mode() const {
    return ((resource1 >> 12) & 0xff) | (((resource1 >> 21) & 1) << 8) | (((resource1 >> 23) & 1) << 9) |
           (((resource1 >> 26) & 1) << 23);
  }
  // compute_pgm_rsrc2
  bool private_segment() const { return (resource2 & 1) != 0; }
  unsigned user_sgprs() const { return (resource2 >> 1) & 0x1f; }
  bool workgroup_id(unsigned dimension) const { return ((resource2 >> (7 + dimension)) & 1) != 0; }
  bool workgroup_info() const { return ((resource2 >> 10) & 1) != 0; }
  unsigned workitem_id() const { return (resource2 >> 11) & 3; }
  // compute_pgm_rsrc3 (gfx90a and later of this line)
  unsigned accumulation_offset() const { return ((resource3 & 0x3f) + 1) * 4; }
  // Bit 16, TG_SPLIT: waves of a workgroup may run on several compute units.
  bool splits_workgroups() const { return ((resource3 >> 16) & 1) != 0; }
  // kernel_code_properties
  bool property(unsigned bit) const { return ((properties >> bit) & 1) != 0; }
  unsigned preload_dwords() const { return kernarg_preload & 0x7f; }
  unsigned preload_offset() const { return kernarg_preload >> 7; }
  // Lanes of a wave: 64, or 32 where the target has both and the kernel says so.
  unsigned lanes() const { return property(10) ? 32 : 64; }
  unsigned vgpr_unit = 8;  // what the descriptor counts registers in
  bool operator==(const KernelDescriptor&) const = default;
};

// The 64 bytes of one.
inline constexpr std::size_t descriptor_bytes = 64;
// `target`: the target of the kernel; null where it is not known.
KernelDescriptor read_descriptor(std::span<const std::byte, descriptor_bytes> bytes, const targets::Target* target);

enum KernelProperty : std::uint8_t {
  property_private_segment_buffer = 0,
  property_dispatch_ptr = 1,
  property_queue_ptr = 2,
  property_kernarg_ptr = 3,
  property_dispatch_id = 4,
  property_flat_scratch_init = 5,
  property_private_segment_size = 6,
  property_wavefront_size32 = 10,
  property_dynamic_stack = 11,
};

struct KernelDescription {
  KernelInfo info;
  KernelDescriptor descriptor;
  std::uint64_t descriptor_address = 0;  // relative to the load address
  // What the metadata says of what the descriptor decides, where it says it.
  std::optional<std::uint64_t> stated_lds_bytes;
  std::optional<std::uint64_t> stated_private_bytes;
  std::optional<std::uint64_t> stated_wavefront_size;
};

struct CodeObject {
  std::string target_id;      // "amdgcn-amd-amdhsa--gfx950" without its triple: "gfx950:xnack-"
  std::uint32_t machine = 0;  // EF_AMDGPU_MACH
  unsigned abi_version = 0;
  std::vector<Segment> segments;
  std::vector<Symbol> dynamic_symbols;
  std::vector<Symbol> symbols;  // dynamic ones and, where the file has them, local ones
  std::vector<Relocation> relocations;
  std::vector<KernelDescription> kernels;
  std::uint64_t memory_bytes = 0;  // from the lowest to the end of the highest segment, from 0
};

// What a function covers: from its symbol, or from a place that no symbol covers to the next symbol.
struct FunctionExtent {
  std::string name;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  bool named = false;
};
// `place` and what is returned are relative to the load address; [begin, end) is the executable segment around it.
FunctionExtent function_around(std::span<const Symbol> symbols, std::uint64_t place, std::uint64_t begin,
                               std::uint64_t end);

// The text names the field, its value and what is accepted.
std::expected<CodeObject, std::string> read_code_object(std::span<const std::byte> image);
// A code object as it lies in memory, from its first segment on, as a file that reads the same; empty when its headers
// are not there. What is never loaded (local symbols, lines) is not in it.
std::vector<std::byte> code_object_in_memory(std::span<const std::byte> memory);

// Processor ("gfx950") named by an ELF code object's header; empty when `image` is not one. For choosing from a
// bundle.
std::string code_object_processor(std::span<const std::byte> image);
// What is wrong with a code object's bytes; empty when nothing is.
std::string code_object_problem(std::span<const std::byte> image);

}  // namespace wavejit::simgpu
