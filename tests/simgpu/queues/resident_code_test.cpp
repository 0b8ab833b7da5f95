// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code by address: descriptors read from memory, functions found with and without a code object's symbols.
#include "simgpu/machine/loader/resident_code.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ring.h"
#include "simgpu/machine/decode/function.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

// A branch over an early end, and code behind the last end that nothing reaches.
constexpr const char* two_ends = R"(
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc1 0f
  s_endpgm
0:
  v_mov_b32 v1, 1)";

std::shared_ptr<ResidentCode> resident(const CodeInMemory& code, FindImage find = {}) {
  auto made = code.device().resident_code(code.base(), code.bytes(), std::move(find));
  EXPECT_TRUE(made.has_value());
  return *made;
}

// As code that was never a code object.
void take_headers_away(const CodeInMemory& code) { *host_pointer<std::uint32_t>(code.base()) = 0; }

TEST(ResidentCode, AFunctionWithoutSymbolEndsBehindItsLastReachableEnd) {
  const CodeInMemory code(KernelSource{.body = two_ends, .after = "  s_nop 5\n  s_nop 6\n"});
  const auto resident_code = resident(code);
  const Instruction* const first = resident_code->instruction_at(code.entry());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->function->address, code.entry());
  EXPECT_EQ(first->function->bytes, 5U * 4U);
  EXPECT_THAT(first->function->name, HasSubstr("code at 0x"));
  // The function after it is decoded when it is reached.
  const Instruction* const behind = resident_code->instruction_at(code.entry() + 20);
  ASSERT_NE(behind, nullptr);
  EXPECT_NE(behind->function, first->function);
  EXPECT_EQ(resident_code->instruction_at(code.base() + code.bytes()), nullptr);
}

TEST(ResidentCode, AnImageNamesKernelsAndDelimitsFunctions) {
  const KernelSource source{.body = two_ends, .after = "  s_nop 5\n"};
  const CodeInMemory code(source);
  int asked = 0;
  const auto resident_code = resident(code, [&](std::uint64_t address) -> std::optional<CodeImage> {
    ++asked;
    EXPECT_EQ(address, code.base());
    return CodeImage{.bytes = assemble(source), .load_address = code.base()};
  });
  const auto kernel = resident_code->kernel_at(code.descriptor());
  ASSERT_TRUE(kernel.has_value()) << kernel.error();
  EXPECT_EQ((*kernel)->info.name, "k");
  EXPECT_EQ((*kernel)->info.kernarg_bytes, 8U);
  EXPECT_EQ((*kernel)->entry, code.entry());
  const Instruction* const first = resident_code->instruction_at(code.entry());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->function->name, "k");
  EXPECT_EQ(first->function->bytes, 6U * 4U);
  EXPECT_EQ(*resident_code->kernel_at(code.descriptor()), *kernel);
  EXPECT_EQ(asked, 1);
}

// As of compressed bundles: the image was freed when it was loaded, and its place may have another one's bytes.
TEST(ResidentCode, WhatWasLoadedNamesKernelsWhereTheImageIsGone) {
  const KernelSource source{.body = two_ends, .after = "  s_nop 5\n"};
  const std::vector<FindImage> finders = {
      {},
      [](std::uint64_t) { return std::nullopt; },
      [](std::uint64_t address) { return CodeImage{.bytes = std::vector<std::byte>(4096), .load_address = address}; },
      [](std::uint64_t address) {
        return CodeImage{.bytes = assemble({.body = two_ends, .kernarg_bytes = 16}), .load_address = address};
      }};
  for (const FindImage& find : finders) {
    const CodeInMemory code(source);
    const auto resident_code = resident(code, find);
    const auto kernel = resident_code->kernel_at(code.descriptor());
    ASSERT_TRUE(kernel.has_value()) << kernel.error();
    EXPECT_EQ((*kernel)->info.name, "k");
    EXPECT_EQ((*kernel)->info.kernarg_bytes, 8U);
    const Instruction* const first = resident_code->instruction_at(code.entry());
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->function->name, "k");
    EXPECT_EQ(first->function->bytes, 6U * 4U);
  }
}

TEST(ResidentCode, CodeThatWasNoCodeObjectHasNoName) {
  const CodeInMemory code(KernelSource{.body = two_ends});
  take_headers_away(code);
  const auto kernel = resident(code)->kernel_at(code.descriptor());
  ASSERT_TRUE(kernel.has_value()) << kernel.error();
  EXPECT_THAT((*kernel)->info.name, HasSubstr("kernel at 0x"));
}

TEST(ResidentCode, AnImageThatEndsBeforeIsAnotherOnes) {
  const KernelSource source{.body = two_ends};
  const CodeInMemory code(source);
  take_headers_away(code);
  const auto resident_code = resident(code, [&](std::uint64_t) -> std::optional<CodeImage> {
    return CodeImage{.bytes = assemble(source), .load_address = code.base() - 0x100000};
  });
  const auto kernel = resident_code->kernel_at(code.descriptor());
  ASSERT_TRUE(kernel.has_value()) << kernel.error();
  EXPECT_THAT((*kernel)->info.name, HasSubstr("kernel at 0x"));
  EXPECT_EQ(resident_code->instruction_at(code.entry())->function->load_address, 0U);
}

TEST(ResidentCode, ADescriptorThatChangedIsReadAgain) {
  const CodeInMemory code(KernelSource{.body = two_ends});
  const auto resident_code = resident(code);
  const auto before = resident_code->kernel_at(code.descriptor());
  ASSERT_TRUE(before.has_value());
  *host_pointer<std::uint32_t>(code.descriptor() + 8) = 48;
  const auto after = resident_code->kernel_at(code.descriptor());
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ((*before)->info.kernarg_bytes, 8U);
  EXPECT_EQ((*after)->info.kernarg_bytes, 48U);
}

// ROCr's own copy kernels: sizes and preloads must not be read from their older header.
TEST(ResidentCode, TheOlderHeaderHasNoSizes) {
  const CodeInMemory code(KernelSource{.body = two_ends});
  auto* const place = host_pointer(code.descriptor());
  std::array<std::uint32_t, 16> header{};
  std::memcpy(header.data(), place, sizeof header);
  header[0] = 1;
  header[1] = 1;
  header[2] = 0x00090001;
  header[3] = 0;
  header[4] = 256;
  header[5] = 0;
  header[14] = 0x00080008;
  std::memcpy(place, header.data(), sizeof header);
  const auto kernel = resident(code)->kernel_at(code.descriptor());
  ASSERT_TRUE(kernel.has_value()) << kernel.error();
  EXPECT_EQ((*kernel)->info.kernarg_bytes, 0U);
  EXPECT_EQ((*kernel)->descriptor.preload_dwords(), 0U);
  EXPECT_EQ((*kernel)->entry, code.descriptor() + 256);
}

// Waves of 64 lanes where the target's own have 32: masks are pairs, registers are counted in fours, and the image's
// description is of this kernel.
TEST(ResidentCode, AKernelSaysHowManyLanesItsCodeIsFor) {
  const CodeInMemory code(KernelSource{
      .body = "  v_cmp_gt_u32_e64 s[10:11], 50, v0", .target = "gfx1201", .directives = ".amdhsa_wavefront_size32 0"});
  const auto resident_code = resident(code);
  const auto kernel = resident_code->kernel_at(code.descriptor());
  ASSERT_TRUE(kernel.has_value()) << kernel.error();
  EXPECT_EQ((*kernel)->info.name, "k");
  EXPECT_EQ((*kernel)->descriptor.lanes(), 64U);
  EXPECT_EQ((*kernel)->descriptor.vgprs(), 64U);
  const Instruction* const first = resident_code->instruction_at(code.entry());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->destination[0].dwords, 2U);
  EXPECT_FALSE(first->function->has_narrow_masks);
  // Another kernel beside it that has 32.
  auto* const properties = host_pointer<std::uint16_t>(code.descriptor() + 56);
  *properties |= 1U << property_wavefront_size32;
  const auto narrow = resident_code->kernel_at(code.descriptor());
  ASSERT_FALSE(narrow.has_value());
  EXPECT_THAT(narrow.error(), HasSubstr("kernels of waves of 64 lanes and of 32 lanes beside each other"));
}

TEST(ResidentCode, AnEntryOutsideIsRefused) {
  const CodeInMemory code(KernelSource{.body = two_ends});
  *host_pointer<std::int64_t>(code.descriptor() + 16) = std::int64_t{1} << 40;
  const auto kernel = resident(code)->kernel_at(code.descriptor());
  ASSERT_FALSE(kernel.has_value());
  EXPECT_THAT(kernel.error(), HasSubstr("outside of the executable memory"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
