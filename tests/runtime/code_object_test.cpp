// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The look at a code object that needs no device, on a small one made here: what is wrong is named, nothing is read
// outside of it.
#include "runtime/kernels/code_object.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/kernels/kernel_notes.h"
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

// ---- Notes
// -------------------------------------------------------------------------------------------------------------

constexpr std::size_t note_bytes = 512;

// A header, one segment of notes: somebody else's, then the metadata.
struct NotedImage {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  unsigned char notes[note_bytes]{};
};

NotedImage noted_image(const nlohmann::json& metadata, std::uint32_t type = 32) {
  NotedImage image;
  std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_phoff = offsetof(NotedImage, segment);
  image.header.e_phnum = 1;
  image.header.e_phentsize = sizeof(Elf64_Phdr);
  image.segment.p_type = PT_NOTE;
  image.segment.p_offset = offsetof(NotedImage, notes);
  std::size_t at = 0;
  const auto add = [&](std::string_view owner, std::uint32_t of_type, const std::vector<std::uint8_t>& text) {
    const Elf64_Nhdr header = {.n_namesz = static_cast<Elf64_Word>(owner.size()),
                               .n_descsz = static_cast<Elf64_Word>(text.size()),
                               .n_type = of_type};
    std::memcpy(image.notes + at, &header, sizeof header);
    at += sizeof header;
    std::memcpy(image.notes + at, owner.data(), owner.size());
    at += (owner.size() + 3) / 4 * 4;
    std::memcpy(image.notes + at, text.data(), text.size());
    at += (text.size() + 3) / 4 * 4;
  };
  add(std::string_view("GNU\0", 4), 3, {1, 2, 3, 4, 5});
  add(std::string_view("AMDGPU\0", 7), type, nlohmann::json::to_msgpack(metadata));
  image.segment.p_filesz = at;
  return image;
}

nlohmann::json metadata_of(std::uint32_t kernarg_bytes, std::uint32_t lds_bytes, std::uint32_t threads) {
  const nlohmann::json other = {{".name", "other"}, {".kernarg_segment_size", 8}};
  const nlohmann::json kernel = {{".name", "kernel"},
                                 {".kernarg_segment_size", kernarg_bytes},
                                 {".group_segment_fixed_size", lds_bytes},
                                 {".max_flat_workgroup_size", threads}};
  return {{"amdhsa.kernels", {other, kernel}}};
}

std::string difference(const NotedImage& image, const std::string& kernel = "kernel") {
  const cache::KernelFacts facts = {.name = kernel, .kernarg_bytes = 96, .lds_bytes = 34048, .threads = 256};
  return runtime::notes_differ(std::as_bytes(std::span(&image, 1)), facts).value_or("none");
}

TEST(KernelNotes, AreHeldAgainstTheEntry) {
  EXPECT_EQ(difference(noted_image(metadata_of(96, 34048, 256))), "none");
  EXPECT_EQ(difference(noted_image(metadata_of(104, 34048, 256))),
            "its notes say 104 bytes of arguments, the entry 96");
  EXPECT_EQ(difference(noted_image(metadata_of(96, 0, 256))), "its notes say 0 bytes of LDS, the entry 34048");
  EXPECT_EQ(difference(noted_image(metadata_of(96, 34048, 64))), "its notes say 64 threads, the entry 256");
  EXPECT_EQ(difference(noted_image(metadata_of(96, 34048, 256)), "third"), "its notes have no kernel third");
}

// What cannot be read is the driver's to judge.
TEST(KernelNotes, ThatAreNotThereSayNothing) {
  EXPECT_EQ(difference(noted_image(metadata_of(1, 2, 3), 31)), "none");
  EXPECT_EQ(difference(noted_image("text")), "none");
  EXPECT_EQ(difference(noted_image(nlohmann::json{{"amdhsa.kernels", 7}})), "none");
  EXPECT_EQ(difference(NotedImage{}), "none");
}

// Arrays in arrays: each level is one byte of the file, and would be a stack frame of a recursive reader.
TEST(KernelNotes, ThatGoDeeperThanAnyCompilersSayNothing) {
  constexpr std::size_t depth = 8'000'000;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  header.e_phentsize = sizeof(Elf64_Phdr);
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  const Elf64_Nhdr note = {.n_namesz = 7, .n_descsz = depth, .n_type = 32};
  segment.p_filesz = sizeof note + 8 + depth;
  std::vector<std::byte> image;
  const auto add = [&](const void* bytes, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(bytes);
    image.insert(image.end(), first, first + size);
  };
  add(&header, sizeof header);
  add(&segment, sizeof segment);
  add(&note, sizeof note);
  add("AMDGPU\0", 8);
  image.resize(image.size() + depth, std::byte{0x91});
  image.back() = std::byte{0xc0};
  EXPECT_EQ(runtime::notes_differ(image, {.name = "kernel"}), std::nullopt);
}

TEST(KernelNotes, CutOrFlippedAnywhereTheyAnswer) {
  const NotedImage image = noted_image(metadata_of(96, 34048, 256));
  const auto bytes = std::as_bytes(std::span(&image, 1));
  const cache::KernelFacts facts = {.name = "kernel", .kernarg_bytes = 96, .lds_bytes = 34048, .threads = 256};
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(runtime::notes_differ(cut, facts) == "");
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::vector<std::byte> flipped(bytes.begin(), bytes.end());
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(runtime::notes_differ(flipped, facts) == "");
  }
}

}  // namespace
}  // namespace wavejit::tests
