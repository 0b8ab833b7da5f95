// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffer descriptors as clang, Triton and people who write them by hand make them, and the range check of each.
#include <format>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::Each;

constexpr std::uint32_t swizzle_enable = 0x8000'0000;
constexpr std::uint32_t cache_swizzle = 0x4000'0000;
constexpr std::uint32_t add_thread_id = 1U << 23;

// The words behind the base address. The buffer holds 1000, 1001, …: word i is 1000 + i.
struct Descriptor {
  std::uint32_t upper = 0;  // word 1 above the base: stride, cache swizzle, swizzle
  std::uint32_t records = 4096;
  std::uint32_t format = 0x27000;
};

// s[8:11] is the descriptor, v1 a lane's number times 4, v2 times 16. Returns v10 of every lane.
std::vector<std::uint32_t> run(const Descriptor& descriptor, const std::string& body, unsigned lds_bytes = 0) {
  const Assembled kernel(KernelSource{.body = std::format(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_load_dwordx2 s[6:7], s[0:1], 0x10
  v_lshlrev_b32 v1, 2, v0
  v_lshlrev_b32 v2, 4, v0
  s_waitcnt lgkmcnt(0)
  {}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v10, s[6:7])",
                                                          body),
                                      .kernarg_bytes = 24,
                                      .lds_bytes = lds_bytes});
  Buffer<std::uint32_t> memory(16384);
  for (std::uint32_t i = 0; i < memory.size(); ++i) memory[i] = 1000 + i;
  Buffer<std::uint32_t> out(64);
  const std::uint64_t low = memory.address() | (std::uint64_t{descriptor.upper} << 32);
  const std::uint64_t high = descriptor.records | (std::uint64_t{descriptor.format} << 32);
  const Status status = kernel.run({low, high, out.address()});
  EXPECT_TRUE(status.ok()) << status.text;
  return out.copy();
}

// What every one of them must read by plain byte offsets.
struct Maker {
  const char* name;
  Descriptor descriptor;
};
std::ostream& operator<<(std::ostream& to, const Maker& maker) { return to << maker.name; }

class PlainBytes : public ::testing::TestWithParam<Maker> {};

TEST_P(PlainBytes, OffsetsOfLanes) {
  const auto out = run(GetParam().descriptor, "buffer_load_dword v10, v2, s[8:11], 0 offen offset:8");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + (4 * i) + 2) << i;
}
TEST_P(PlainBytes, ScalarOffsets) {
  const auto out =
      run(GetParam().descriptor, "s_movk_i32 s12, 1024\nbuffer_load_dwordx4 v[8:11], v2, s[8:11], s12 offen");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1256 + (4 * i) + 2) << i;
}
TEST_P(PlainBytes, SomeLanesOnly) {
  const auto out = run(GetParam().descriptor, R"(
  v_mov_b32 v10, 7
  s_mov_b64 exec, 0xff00
  buffer_load_ushort v10, v1, s[8:11], 0 offen
  s_mov_b64 exec, -1)");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i / 8 == 1 ? 1000 + i : 7) << i;
}
TEST_P(PlainBytes, LdsDma) {
  const auto out = run(GetParam().descriptor, R"(
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dwordx4 v2, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_read_b32 v10, v2 offset:12)",
                       1024);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + (4 * i) + 3) << i;
}
TEST_P(PlainBytes, Stores) {
  const auto out = run(GetParam().descriptor, R"(
  buffer_store_dword v0, v1, s[8:11], 0 offen
  s_waitcnt vmcnt(0)
  buffer_load_dword v10, v1, s[8:11], 0 offen)");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i) << i;
}
TEST_P(PlainBytes, TheEndIsCountedInBytes) {
  Descriptor descriptor = GetParam().descriptor;
  descriptor.records = 100;
  const auto out = run(descriptor, "buffer_load_dword v10, v1, s[8:11], 0 offen");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 25 ? 1000 + i : 0) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Made, PlainBytes,
    ::testing::Values(
        // llvm.amdgcn.make.buffer.rsrc with the flags that clang and MLIR give it.
        Maker{"ByClang", {}},
        // A row's length in bytes and the cache swizzle: it says how lines spread over the cache, not where bytes lie.
        Maker{"ByTriton", {.upper = cache_swizzle | (256U << 16)}},
        // The same with swizzle-enable: HipKittens' make_srsrc, for which silicon reads plain bytes.
        Maker{"ByHipKittens", {.upper = swizzle_enable | cache_swizzle | (256U << 16), .format = 0x110000}},
        Maker{"BySwizzleAlone", {.upper = swizzle_enable | (16U << 16), .format = 0x110000}},
        // AITER's assembly.
        Maker{"ByHand", {.format = 0x20000}},
        // No stride: nothing to swizzle by.
        Maker{"WithNoStride", {.upper = swizzle_enable}}),
    [](const auto& made) { return std::string(made.param.name); });

TEST(Descriptors, AnIndexCountsRecords) {
  const auto out = run({.upper = 8U << 16, .records = 10}, "buffer_load_dword v10, v0, s[8:11], 0 idxen offset:4");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 10 ? 1000 + (2 * i) + 1 : 0) << i;
}

// Element i of a group of eight records stands behind element i of the record before it.
TEST(Descriptors, AnIndexIsSwizzled) {
  const Descriptor swizzled{.upper = swizzle_enable | (16U << 16), .records = 40};
  for (const std::uint32_t element : {0U, 3U}) {
    const auto out = run(swizzled, std::format("buffer_load_dword v10, v0, s[8:11], 0 idxen offset:{}", 4 * element));
    for (std::uint32_t i = 0; i < 64; ++i) {
      EXPECT_EQ(out[i], i < 40 ? 1000 + (i / 8 * 32) + (element * 8) + (i % 8) : 0) << element << " " << i;
    }
  }
  // Beyond the record.
  EXPECT_THAT(run(swizzled, "buffer_load_dword v10, v0, s[8:11], 0 idxen offset:16"), Each(0U));
}

// Elements are four bytes, whatever stands in bits 19 and 20 of the last word, where older targets had their size.
TEST(Descriptors, ElementsAreFourBytes) {
  const auto out = run({.upper = swizzle_enable | (16U << 16), .records = 64, .format = 0x110000},
                       "buffer_load_dword v10, v0, s[8:11], 0 idxen offset:4");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + (i / 8 * 32) + 8 + (i % 8)) << i;
}

TEST(Descriptors, ThreadsAreAddedToTheIndex) {
  const auto out =
      run({.upper = 16U << 16, .format = add_thread_id}, "buffer_load_dword v10, off, s[8:11], 0 offset:4");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + (4 * i) + 1) << i;
  // Nothing is checked.
  const auto far =
      run({.upper = 256U << 16, .records = 1, .format = add_thread_id}, "buffer_load_dword v10, off, s[8:11], 0");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(far[i], 1000 + (64 * i)) << i;
  // The data format's bits are the stride's uppermost ones.
  const auto wide = run({.upper = 4U << 16, .format = add_thread_id | (1U << 15)}, R"(
  v_mov_b32 v10, 0
  s_mov_b64 exec, 7
  buffer_load_dword v10, off, s[8:11], 0
  s_mov_b64 exec, -1)");
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(wide[i], 1000 + (4097 * i)) << i;
}

// As LLVM describes private memory to targets without flat scratch: each dword of the 64 lanes together.
TEST(Descriptors, PrivateMemoryIsSwizzledByThread) {
  const Descriptor scratch{
      .upper = swizzle_enable | (64U << 16), .records = 0xffff'ffff, .format = add_thread_id | (3U << 21)};
  const auto out = run(scratch, "v_mov_b32 v3, 8\nbuffer_load_dword v10, v3, s[8:11], 0 offen offset:4");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + (3 * 64) + i) << i;
}

// The lane's offset and the instruction's are added in 32 bits; the scalar offset is not part of that sum.
TEST(Descriptors, LaneOffsetsWrapAround) {
  const auto out = run({}, "v_sub_u32 v3, v1, 16\nbuffer_load_dword v10, v3, s[8:11], 0 offen offset:16");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + i) << i;
  const auto wide =
      run({.records = 16}, "v_mov_b32 v3, -16\nbuffer_load_dwordx4 v[10:13], v3, s[8:11], 0 offen offset:16");
  EXPECT_THAT(wide, Each(1000U));
  const auto scalar = run({.records = 0xffff'ffff}, R"(
  s_mov_b32 s12, -16
  v_add_u32 v3, 16, v1
  buffer_load_dword v10, v3, s[8:11], s12 offen)");
  EXPECT_THAT(scalar, Each(0U));
}

TEST(Descriptors, LdsDmaOfLanesOutsideWritesZeros) {
  for (const std::uint32_t records : {0U, 100U, 256U}) {
    const auto out = run({.records = records}, R"(
  v_mov_b32 v4, -1
  ds_write_b32 v1, v4
  s_mov_b32 m0, 0
  s_waitcnt lgkmcnt(0)
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_read_b32 v10, v1)",
                         256);
    for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 4 * i < records ? 1000 + i : 0) << records << " " << i;
  }
}

// AMD's own attention kernel for gfx950 has this image and goes up to this M0.
TEST(Descriptors, LdsDmaReachesBeyond64KiB) {
  const auto out = run({}, R"(
  s_mov_b32 m0, 0x105c0
  s_nop 0
  buffer_load_dwordx4 v2, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  v_add_u32 v3, 0x105c0, v2
  ds_read_b32 v10, v3 offset:4)",
                       68096);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + (4 * i) + 1) << i;
}

}  // namespace
}  // namespace wavejit::simgpu::testing
