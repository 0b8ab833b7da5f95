// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/kernels/code_object.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

// LLVM's "User Guide for AMDGPU Backend", ELF header: the OS ABI of HSA, and the processor in e_flags' low byte.
constexpr unsigned char os_abi_amdgpu_hsa = 64;
constexpr std::uint32_t processor_mask = 0xFF;
constexpr std::uint64_t kernel_descriptor_bytes = 64;

template <typename T>
std::optional<T> read(std::span<const std::byte> bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool inside(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

// A table of the file; nothing when it does not lie in it.
template <typename T>
std::optional<std::vector<T>> table(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t count,
                                    std::uint64_t entry_bytes) {
  if (entry_bytes != sizeof(T) || count > bytes.size() / sizeof(T) || !inside(bytes, offset, count * sizeof(T)))
    return std::nullopt;
  std::vector<T> entries;
  entries.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) entries.push_back(*read<T>(bytes, offset + i * sizeof(T)));
  return entries;
}

std::optional<std::string> header_damage(const Elf64_Ehdr& header, std::string_view target_id) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is no ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "it is no 64-bit little-endian ELF file";
  if (header.e_machine != EM_AMDGPU || header.e_ident[EI_OSABI] != os_abi_amdgpu_hsa || header.e_type != ET_DYN)
    return "it is no code object for AMD GPUs";
  const targets::Target* target = targets::find_target(target_id);
  const targets::Target* found = targets::find_target_by_machine(header.e_flags & processor_mask);
  if (target == nullptr || found != target) {
    return "it is for " + (found != nullptr ? std::string(found->id) : "another processor") + " instead of " +
           std::string(target_id);
  }
  return std::nullopt;
}

bool loaded(const std::vector<Elf64_Phdr>& segments, std::uint64_t address, std::uint64_t size) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t offset = address - segment.p_vaddr;
    if (offset <= segment.p_filesz && size <= segment.p_filesz - offset) return true;
  }
  return false;
}

std::string_view name_at(std::span<const std::byte> bytes, const Elf64_Shdr& names, std::uint64_t offset) {
  if (!inside(bytes, names.sh_offset, names.sh_size) || offset >= names.sh_size) return {};
  const char* begin = reinterpret_cast<const char*>(bytes.data()) + names.sh_offset + offset;
  const void* end = std::memchr(begin, 0, names.sh_size - offset);
  return end == nullptr ? std::string_view() : std::string_view(begin, static_cast<const char*>(end) - begin);
}

}  // namespace

std::optional<std::string> code_object_damage(std::span<const std::byte> bytes, std::string_view target_id,
                                              std::string_view kernel) {
  const auto header = read<Elf64_Ehdr>(bytes, 0);
  if (!header) return "it is no ELF file";
  if (auto damage = header_damage(*header, target_id)) return damage;
  const auto segments = table<Elf64_Phdr>(bytes, header->e_phoff, header->e_phnum, header->e_phentsize);
  const auto sections = table<Elf64_Shdr>(bytes, header->e_shoff, header->e_shnum, header->e_shentsize);
  if (!segments || !sections) return "its headers lie outside of it";
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type == PT_LOAD && !inside(bytes, segment.p_offset, segment.p_filesz))
      return "a segment lies outside of it";
  }
  const std::string wanted = std::string(kernel) + ".kd";
  for (const Elf64_Shdr& section : *sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections->size()) continue;
    const auto symbols =
        table<Elf64_Sym>(bytes, section.sh_offset, section.sh_size / sizeof(Elf64_Sym), section.sh_entsize);
    if (!symbols) return "its symbols lie outside of it";
    for (const Elf64_Sym& symbol : *symbols) {
      if (name_at(bytes, (*sections)[section.sh_link], symbol.st_name) != wanted) continue;
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_size == kernel_descriptor_bytes &&
          loaded(*segments, symbol.st_value, kernel_descriptor_bytes))
        return std::nullopt;
      return "the descriptor of kernel " + std::string(kernel) + " lies in no segment";
    }
  }
  return "it has no kernel " + std::string(kernel);
}

}  // namespace wavejit::runtime
