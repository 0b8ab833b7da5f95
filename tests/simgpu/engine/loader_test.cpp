// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code objects: what is read from them, and what damaged ones give.
#include <elf.h>

#include <random>
#include <string>
#include <utility>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/machine/loader/code_object.h"
#include "simgpu/machine/loader/message_pack.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

const KernelSource& plain() {
  static const KernelSource source{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v0, s[6:7])",
                                   .lds_bytes = 96,
                                   .private_bytes = 16,
                                   .after = R"(
.Lend9:
.size k, .Lend9-k
.data
.globl table
.type table,@object
.p2align 3
table:
  .quad 0x1234
  .quad table
.size table, 16
.text
)"};
  return source;
}

Device& device_of(const char* target) { return *Device::find(Device::open(target, 1)->front()); }

TEST(Loader, ReadsKernelsAndSymbols) {
  const auto object = read_code_object(assemble(plain()));
  ASSERT_TRUE(object.has_value()) << object.error();
  EXPECT_EQ(object->target_id, "gfx950");
  EXPECT_EQ(object->abi_version, 3u);
  ASSERT_EQ(object->kernels.size(), 1u);
  const KernelInfo& info = object->kernels[0].info;
  EXPECT_EQ(info.name, "k");
  EXPECT_EQ(info.kernarg_bytes, 8u);
  EXPECT_EQ(info.explicit_kernarg_bytes, 8u);
  EXPECT_EQ(info.static_lds_bytes, 96u);
  EXPECT_EQ(info.private_bytes, 16u);
  EXPECT_EQ(object->kernels[0].descriptor.vgprs(), 64u);
  EXPECT_EQ(code_object_processor(assemble(plain())), "gfx950");
}

// As linkers leave them of several objects, rocBLAS' products among others.
TEST(Loader, KernelsOfEveryNoteAreFound) {
  const KernelSource source{.body = "s_nop 0", .after = R"(
.globl other
.p2align 8
.type other,@function
other:
  s_endpgm
.size other, 4
.section .rodata
.p2align 6
.amdhsa_kernel other
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 8
  .amdhsa_kernarg_size 16
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: other
    .symbol: other.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
...
.end_amdgpu_metadata
.text
)"};
  const auto object = read_code_object(assemble(source));
  ASSERT_TRUE(object.has_value()) << object.error();
  ASSERT_EQ(object->kernels.size(), 2u);
  EXPECT_EQ(object->kernels[0].info.name, "other");
  EXPECT_EQ(object->kernels[0].info.kernarg_bytes, 16u);
  EXPECT_EQ(object->kernels[1].info.name, "k");
  EXPECT_NE(object->kernels[0].descriptor_address, object->kernels[1].descriptor_address);
}

TEST(Loader, GlobalsAreRelocatedAndFound) {
  const auto module = device_of("gfx950").load(assemble(plain()));
  ASSERT_TRUE(module.has_value()) << module.error().text;
  const GlobalSymbol table = (*module)->find_global("table");
  ASSERT_NE(table.address, 0u);
  EXPECT_EQ(table.bytes, 16u);
  const auto* words = reinterpret_cast<const std::uint64_t*>(table.address);
  EXPECT_EQ(words[0], 0x1234u);
  EXPECT_EQ(words[1], table.address);
  EXPECT_EQ((*module)->find_global("no such thing").address, 0u);
  EXPECT_NE((*module)->find_kernel("k.kd"), nullptr);
  EXPECT_EQ((*module)->find_kernel("x"), nullptr);
}

TEST(Loader, OtherTargetsAreRefused) {
  for (const auto& [made_for, device] : {std::pair{"gfx942", "gfx950"},
                                         {"gfx90a", "gfx950"},
                                         {"gfx1201", "gfx950"},
                                         {"gfx950", "gfx1201"},
                                         {"gfx1200", "gfx1201"}}) {
    SCOPED_TRACE(std::string(made_for) + " on " + device);
    const auto module = device_of(device).load(assemble({.body = "s_nop 0", .target = made_for}));
    ASSERT_FALSE(module.has_value());
    EXPECT_EQ(module.error().code, hip_error_no_binary_for_gpu);
    EXPECT_THAT(module.error().text, HasSubstr(made_for));
    EXPECT_THAT(module.error().text, HasSubstr(device));
  }
}

// The kernel descriptor among a code object's bytes.
std::byte* descriptor_in(std::vector<std::byte>& image) {
  const auto object = read_code_object(image);
  if (!object) return nullptr;
  const std::uint64_t address = object->kernels[0].descriptor_address;
  for (const Segment& segment : object->segments) {
    if (address >= segment.address && address - segment.address < segment.file_bytes) {
      return image.data() + segment.file_offset + (address - segment.address);
    }
  }
  return nullptr;
}

TEST(Loader, MetadataThatContradictsTheDescriptorIsRefused) {
  struct Case {
    std::size_t offset;
    std::uint32_t value;
    const char* text;
  };
  // Fields of the descriptor: LDS, private memory, kernarg size, COMPUTE_PGM_RSRC1 with the registers in its low bits.
  for (const auto& [offset, value, text] :
       {Case{0, 4096, "kernel k: 4096 bytes of LDS in the descriptor, 96 in the metadata"},
        Case{4, 64, "kernel k: 64 bytes of private memory a lane in the descriptor, 16 in the metadata"},
        Case{8, 24, "kernel k: kernarg size 24 in the descriptor, 8 in the metadata"},
        Case{48, 3, "kernel k: 64 vector registers in the metadata, 32 allocated by the descriptor"}}) {
    std::vector<std::byte> image = assemble(plain());
    std::byte* descriptor = descriptor_in(image);
    ASSERT_NE(descriptor, nullptr);
    std::memcpy(descriptor + offset, &value, sizeof value);
    const auto module = device_of("gfx950").load(image);
    ASSERT_FALSE(module.has_value()) << text;
    EXPECT_EQ(module.error().code, hip_error_invalid_image);
    EXPECT_THAT(module.error().text, HasSubstr(text));
  }
}

TEST(Loader, UndefinedSymbolsAreNamed) {
  std::vector<std::byte> image = assemble(plain());
  // `table`, which its own second word points to, becomes a symbol of somebody else's.
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  bool changed = false;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + (i * sizeof section), sizeof section);
    for (std::uint64_t at = 0; section.sh_type == SHT_DYNSYM && at < section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, image.data() + section.sh_offset + at, sizeof symbol);
      if (symbol.st_size != 16) continue;
      symbol.st_shndx = SHN_UNDEF;
      std::memcpy(image.data() + section.sh_offset + at, &symbol, sizeof symbol);
      changed = true;
    }
  }
  ASSERT_TRUE(changed);
  const auto module = device_of("gfx950").load(image);
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().code, hip_error_shared_object_init_failed);
  EXPECT_THAT(module.error().text, HasSubstr("symbol table is undefined"));
}

TEST(Loader, ForeignFilesAreRefusedWithTheReason) {
  const auto refused = [](std::string_view text) { return read_code_object(std::as_bytes(std::span(text))).error(); };
  EXPECT_THAT(refused(""), HasSubstr("too short"));
  EXPECT_THAT(refused(std::string(100, 'x')), HasSubstr("no ELF magic"));
  EXPECT_EQ(device_of("gfx950").load({}).error().code, hip_error_invalid_image);
}

// Whatever the bytes are: an error, or a module that launches or reports. Never a crash, a hang or a huge allocation.
void load_and_launch(Device& device, const std::vector<std::byte>& image, std::uint64_t argument) {
  const auto module = device.load(image);
  if (!module) {
    EXPECT_FALSE(module.error().text.empty());
    return;
  }
  for (const Kernel* kernel : (*module)->kernels()) {
    const std::vector<std::byte> arguments(std::max<std::size_t>(8, kernel->info().explicit_kernarg_bytes));
    std::vector<std::byte> words = arguments;
    std::memcpy(words.data(), &argument, 8);
    static_cast<void>(device.launch({.kernel = kernel, .workgroup_size = {64, 1, 1}, .kernarg = words}));
  }
}

TEST(DamagedCodeObjects, TruncationAnywhere) {
  const std::vector<std::byte> image = assemble(plain());
  Device& device = device_of("gfx950");
  for (std::size_t size = 0; size < image.size(); size += size < 1024 ? 1 : 37) {
    const auto module = device.load(std::span(image).first(size));
    if (module.has_value()) {
      // Section headers at the end are not needed to run.
      EXPECT_GT(size, image.size() / 2);
    }
  }
}

TEST(DamagedCodeObjects, FlippedBytesAnywhere) {
  const std::vector<std::byte> image = assemble(plain());
  Device& device = device_of("gfx950");
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.instruction_limit = 1000;
  scope.set(settings);
  Buffer<std::uint32_t> out(64);
  // A damaged kernel is translated anew each time: there, one byte of seven.
  const std::size_t step = settings.engine == Engine::compile ? 7 : 1;
  for (std::size_t at = 0; at < image.size(); at += step) {
    std::vector<std::byte> damaged = image;
    damaged[at] ^= std::byte{0xff};
    load_and_launch(device, damaged, out.address());
  }
}

TEST(DamagedCodeObjects, RandomDamage) {
  const std::vector<std::byte> image = assemble(plain());
  Device& device = device_of("gfx950");
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.instruction_limit = 1000;
  scope.set(settings);
  Buffer<std::uint32_t> out(64);
  std::mt19937 random(1);
  const int rounds = settings.engine == Engine::compile ? 300 : 2000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> damaged = image;
    for (int i = 0; i < 8; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    load_and_launch(device, damaged, out.address());
  }
}

TEST(MessagePack, ReadsAndRefuses) {
  const auto read = [](std::vector<std::uint8_t> bytes) {
    return read_message_pack(Bytes(std::as_bytes(std::span(bytes))));
  };
  const auto map = read({0x82, 0xa1, 'a', 0xcd, 0x12, 0x34, 0xa1, 'b', 0x93, 0xff, 0xc3, 0xd9, 2, 'h', 'i'});
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->number_of("a"), 0x1234u);
  const MessageValue* list = map->find("b");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->elements.size(), 3u);
  EXPECT_EQ(list->elements[0].integer, -1);
  EXPECT_EQ(list->elements[1].integer, 1);
  EXPECT_EQ(list->elements[2].text, "hi");
  EXPECT_FALSE(read({0x82, 0xa1, 'a'}).has_value());
  EXPECT_FALSE(read({0xdd, 0xff, 0xff, 0xff, 0xff}).has_value());
  EXPECT_FALSE(read({0xdb, 0xff, 0xff, 0xff, 0xff, 'x'}).has_value());
  EXPECT_FALSE(read(std::vector<std::uint8_t>(100'000, 0x91)).has_value());  // nesting without end
}

}  // namespace
}  // namespace wavejit::simgpu::testing
