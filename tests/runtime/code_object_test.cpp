// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The look at a code object that needs no device, on a small one made here: what is wrong is named, nothing is read
// outside of it.
#include "runtime/code_object.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "targets/targets.h"

namespace wavejit::tests {
namespace {

using runtime::code_object_damage;
using ::testing::HasSubstr;

// Header, one segment, names, symbols, three sections, and the descriptor where `load` begins.
struct Image {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  char names[32] = "\0kernel.kd";
  Elf64_Sym symbols[2]{};
  Elf64_Shdr sections[3]{};
  unsigned char descriptor[64]{};
};

Image good_image() {
  Image image;
  std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_ident[EI_CLASS] = ELFCLASS64;
  image.header.e_ident[EI_DATA] = ELFDATA2LSB;
  image.header.e_ident[EI_OSABI] = 64;
  image.header.e_type = ET_DYN;
  image.header.e_machine = EM_AMDGPU;
  image.header.e_flags = targets::find_target("gfx950")->elf_machine_flags;
  image.header.e_phoff = offsetof(Image, segment);
  image.header.e_phnum = 1;
  image.header.e_phentsize = sizeof(Elf64_Phdr);
  image.header.e_shoff = offsetof(Image, sections);
  image.header.e_shnum = 3;
  image.header.e_shentsize = sizeof(Elf64_Shdr);
  image.segment.p_type = PT_LOAD;
  image.segment.p_vaddr = 0x1000;
  image.segment.p_filesz = image.segment.p_memsz = sizeof(Image);
  image.symbols[1] = {.st_name = 1,
                      .st_info = 0,
                      .st_other = 0,
                      .st_shndx = 1,
                      .st_value = 0x1000 + offsetof(Image, descriptor),
                      .st_size = 64};
  image.sections[1].sh_type = SHT_DYNSYM;
  image.sections[1].sh_offset = offsetof(Image, symbols);
  image.sections[1].sh_size = sizeof image.symbols;
  image.sections[1].sh_entsize = sizeof(Elf64_Sym);
  image.sections[1].sh_link = 2;
  image.sections[2].sh_type = SHT_STRTAB;
  image.sections[2].sh_offset = offsetof(Image, names);
  image.sections[2].sh_size = sizeof image.names;
  return image;
}

std::string damage(const Image& image, std::string_view target = "gfx950", std::string_view kernel = "kernel") {
  return code_object_damage(std::as_bytes(std::span(&image, 1)), target, kernel).value_or("nothing");
}

TEST(CodeObjectDamage, AGoodOneHasNone) { EXPECT_EQ(damage(good_image()), "nothing"); }

TEST(CodeObjectDamage, NamesWhatIsWrong) {
  EXPECT_THAT(damage(good_image(), "gfx942"), HasSubstr("it is for gfx950 instead of gfx942"));
  EXPECT_THAT(damage(good_image(), "gfx950", "other"), HasSubstr("it has no kernel other"));
  EXPECT_THAT(damage(good_image(), "gfx950", ""), HasSubstr("it has no kernel"));
  const auto changed = [](auto change) {
    Image image = good_image();
    change(image);
    return damage(image);
  };
  EXPECT_THAT(changed([](Image& i) { i.header.e_ident[0] = 'x'; }), HasSubstr("no ELF file"));
  EXPECT_THAT(changed([](Image& i) { i.header.e_ident[EI_CLASS] = ELFCLASS32; }), HasSubstr("64-bit"));
  EXPECT_THAT(changed([](Image& i) { i.header.e_machine = EM_X86_64; }), HasSubstr("no code object for AMD GPUs"));
  EXPECT_THAT(changed([](Image& i) { i.header.e_flags = 0; }), HasSubstr("another processor"));
  EXPECT_THAT(changed([](Image& i) { i.header.e_shoff = ~0ULL; }), HasSubstr("headers lie outside"));
  EXPECT_THAT(changed([](Image& i) { i.header.e_phnum = 0xFFFF; }), HasSubstr("headers lie outside"));
  EXPECT_THAT(changed([](Image& i) { i.segment.p_filesz = ~0ULL; }), HasSubstr("a segment lies outside"));
  EXPECT_THAT(changed([](Image& i) { i.sections[1].sh_size = ~0ULL; }), HasSubstr("symbols lie outside"));
  EXPECT_THAT(changed([](Image& i) { i.sections[1].sh_link = 7; }), HasSubstr("no kernel"));
  EXPECT_THAT(changed([](Image& i) { i.sections[2].sh_offset = ~0ULL; }), HasSubstr("no kernel"));
  EXPECT_THAT(changed([](Image& i) { i.symbols[1].st_value = 0; }), HasSubstr("lies in no segment"));
  EXPECT_THAT(changed([](Image& i) { i.symbols[1].st_size = 63; }), HasSubstr("lies in no segment"));
}

// Any prefix, any bit: an answer, and nothing read outside (AddressSanitizer watches the exact copy).
TEST(CodeObjectDamage, CutOrFlippedAnywhereItAnswers) {
  const Image image = good_image();
  const auto bytes = std::as_bytes(std::span(&image, 1));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(code_object_damage(cut, "gfx950", "kernel")) << size;
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::vector<std::byte> flipped(bytes.begin(), bytes.end());
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const auto answer = code_object_damage(flipped, "gfx950", "kernel");
    EXPECT_TRUE(!answer || !answer->empty());
  }
}

}  // namespace
}  // namespace wavejit::tests
