// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/image_sections.h"

#include <elf.h>

#include <optional>

#include "simgpu/machine/loader/bytes.h"

namespace wavejit::simgpu::hip_front {

// clr's rocclr/elf/elf.cpp, InitElf: section names, and among them ".strtab". It does not look into that section.
std::string problem_of_sections(std::span<const std::byte> image) {
  const simgpu::Bytes file(image);
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header) return "the image is shorter than an ELF header";
  const auto section = [&](std::uint64_t index) -> std::optional<Elf64_Shdr> {
    if (index >= header->e_shnum || header->e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
    if (header->e_shoff > file.size()) return std::nullopt;
    return file.read<Elf64_Shdr>(header->e_shoff + (index * sizeof(Elf64_Shdr)));
  };
  const auto of_names = section(header->e_shstrndx);
  const auto names = of_names ? file.part(of_names->sh_offset, of_names->sh_size) : std::nullopt;
  if (header->e_shstrndx == SHN_UNDEF || !names) return "the image has no names of sections, which HIP wants";
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const auto one = section(index);
    const auto name = one ? names->text(one->sh_name) : std::nullopt;
    if (name && *name == ".strtab") return {};
  }
  return "the image has no section .strtab, without which HIP takes none; link it without -s (--strip-all)";
}

}  // namespace wavejit::simgpu::hip_front
