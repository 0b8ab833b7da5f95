// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ELF-64, as in the gABI: what lies in a code object.
#pragma once

#include <cstdint>

namespace wavejit::simgpu {

struct ElfHeader {
  std::uint8_t ident[16];
  std::uint16_t type;
  std::uint16_t machine;
  std::uint32_t version;
  std::uint64_t entry;
  std::uint64_t program_headers;
  std::uint64_t section_headers;
  std::uint32_t flags;
  std::uint16_t header_bytes;
  std::uint16_t program_header_bytes;
  std::uint16_t program_header_count;
  std::uint16_t section_header_bytes;
  std::uint16_t section_header_count;
  std::uint16_t section_names;
};

struct ProgramHeader {
  std::uint32_t type;
  std::uint32_t flags;
  std::uint64_t offset;
  std::uint64_t address;
  std::uint64_t physical;
  std::uint64_t file_bytes;
  std::uint64_t memory_bytes;
  std::uint64_t alignment;
};

struct SectionHeader {
  std::uint32_t name;
  std::uint32_t type;
  std::uint64_t flags;
  std::uint64_t address;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint32_t link;
  std::uint32_t info;
  std::uint64_t alignment;
  std::uint64_t entry_bytes;
};

struct ElfSymbol {
  std::uint32_t name;
  std::uint8_t info;
  std::uint8_t other;
  std::uint16_t section;
  std::uint64_t value;
  std::uint64_t bytes;
};

struct ElfRelocation {
  std::uint64_t offset;
  std::uint64_t info;
  std::int64_t addend;
};

}  // namespace wavejit::simgpu
