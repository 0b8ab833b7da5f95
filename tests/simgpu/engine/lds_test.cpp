// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS: widths, offsets, atomics, lane movement, transpose reads and loads that go straight to LDS.
#include <array>
#include <bit>
#include <format>
#include <numeric>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

// Copies `bytes` of the buffer (a multiple of 256) to LDS address 0, runs `body` and copies LDS back behind the input.
// v0 is the lane, v1 is 4·lane; s[6:7] is the buffer.
KernelSource with_lds(const std::string& body, unsigned bytes = 2048, const std::string& target = "gfx950") {
  std::string text = "s_load_dwordx2 s[6:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n";
  for (unsigned at = 0; at < bytes; at += 256) {
    text += std::format("global_load_dword v2, v1, s[6:7] offset:{0}\nds_write_b32 v1, v2 offset:{0}\n", at);
  }
  text += body + "\n";
  text += std::format("s_add_u32 s6, s6, {}\ns_addc_u32 s7, s7, 0\n", bytes);
  for (unsigned at = 0; at < bytes; at += 256) {
    text += std::format("ds_read_b32 v2, v1 offset:{0}\nglobal_store_dword v1, v2, s[6:7] offset:{0}\n", at);
  }
  return {.body = text, .target = target, .lds_bytes = bytes};
}

// Input: words 0, 1, 2, …; returns LDS as the kernel left it.
std::vector<std::uint32_t> run_lds(const std::string& body, const std::string& target = "gfx950") {
  constexpr std::size_t words = 512;
  const Assembled kernel(with_lds(body, words * 4, target));
  Buffer<std::uint32_t> memory(2 * words);
  for (std::uint32_t i = 0; i < words; ++i) memory[i] = i;
  const Status status = kernel.run({memory.address()});
  EXPECT_TRUE(status.ok()) << status.text;
  const std::vector<std::uint32_t> all = memory.copy();
  return {all.begin() + words, all.end()};
}

TEST(Lds, TwoAddressesCountElements) {
  const auto lds =
      run_lds("ds_read2_b32 v[10:11], v1 offset0:1 offset1:3\nds_write2_b32 v1, v10, v11 offset0:128 offset1:192");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(lds[128 + i], i + 1);
    EXPECT_EQ(lds[192 + i], i + 3);
  }
}

TEST(Lds, StridedTwoAddressesCountSixtyFours) {
  const auto lds = run_lds(R"(
  v_lshlrev_b32 v3, 3, v0
  ds_read2st64_b64 v[10:13], v3 offset0:0 offset1:1
  ds_write2st64_b32 v1, v10, v13 offset0:6 offset1:7)");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(lds[384 + i], 2 * i);
    EXPECT_EQ(lds[448 + i], 128 + (2 * i) + 1);
  }
}

TEST(Lds, WideAccessesAndHalves) {
  const auto lds = run_lds(R"(
  v_lshlrev_b32 v3, 4, v0
  ds_read_b128 v[10:13], v3
  v_mov_b32 v14, 0x55555555
  ds_read_u16_d16 v14, v3
  v_mov_b32 v15, 0x55555555
  ds_read_u8_d16_hi v15, v3 offset:4
  ds_read_i8 v16, v3 offset:8
  ds_write_b96 v3, v[14:16] offset:1024)");
  for (std::uint32_t i = 0; i < 64; ++i) {
    if (1024 + (16 * i) + 12 > 2048) break;
    EXPECT_EQ(lds[256 + (4 * i)], 4 * i);
    EXPECT_EQ(lds[256 + (4 * i) + 1], (((4 * i) + 1) & 0xff) << 16);
    EXPECT_EQ(lds[256 + (4 * i) + 2], static_cast<std::uint32_t>(static_cast<std::int8_t>((4 * i) + 2)));
    EXPECT_EQ(lds[256 + (4 * i) + 3], 256 + (4 * i) + 3);
  }
}

// All lanes in bounds are looked at four at a time.
TEST(Lds, ResultsMayOverwriteTheirAddresses) {
  const auto quads = run_lds(R"(
  v_xor_b32 v3, 63, v0
  v_lshlrev_b32 v3, 3, v3
  ds_read_b128 v[2:5], v3
  v_lshlrev_b32 v6, 4, v0
  ds_write_b128 v6, v[2:5] offset:1024)");
  const auto pairs = run_lds(R"(
  v_xor_b32 v3, 63, v0
  v_lshlrev_b32 v3, 2, v3
  ds_read_b64 v[2:3], v3
  v_lshlrev_b32 v6, 3, v0
  ds_write_b64 v6, v[2:3] offset:1024)");
  for (std::uint32_t lane = 0; lane < 64; ++lane) {
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(quads[256 + (4 * lane) + i], (2 * (63 - lane)) + i) << lane;
    for (std::uint32_t i = 0; i < 2; ++i) EXPECT_EQ(pairs[256 + (2 * lane) + i], 63 - lane + i) << lane;
  }
}

TEST(Lds, OfWritesToOnePlaceTheHighestLanesStays) {
  const auto lds = run_lds(R"(
  v_mov_b32 v3, 0
  v_mov_b32 v10, v0
  v_add_u32 v11, 100, v0
  v_add_u32 v12, 200, v0
  v_add_u32 v13, 300, v0
  ds_write_b128 v3, v[10:13]
  ds_write_b64 v3, v[10:11] offset:16
  ds_write_b32 v3, v10 offset:24)");
  const std::vector<std::uint32_t> start(lds.begin(), lds.begin() + 8);
  EXPECT_EQ(start, (std::vector<std::uint32_t>{63, 163, 263, 363, 63, 163, 63, 7}));
}

// AMD's matrix products of float64 clear registers by a read far behind their LDS.
TEST(Lds, ReadsNothingAndDropsWritesBeyondItsGranules) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v3, 0xf00000
  v_mov_b32 v4, -1
  v_mov_b32 v5, -1
  v_mov_b32 v6, -1
  v_mov_b32 v7, -1
  v_mov_b32 v10, 7
  ds_write_b32 v1, v10
  ds_write_b128 v3, v[4:7]
  ds_write2_b32 v1, v10, v10 offset0:64 offset1:255
  s_waitcnt lgkmcnt(0)
  ds_read_b128 v[4:7], v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[6:7]
  global_store_dword v1, v7, s[6:7] offset:256
  ds_read2_b32 v[4:5], v1 offset0:64 offset1:255
  ds_add_rtn_u32 v6, v3, v10
  ds_read_u16 v7, v3
  s_mov_b64 s[8:9], src_shared_base
  v_mov_b32 v13, s9
  v_mov_b32 v12, v3
  v_mov_b32 v15, 5
  flat_store_dword v[12:13], v15
  flat_load_dword v14, v[12:13]
  s_mov_b32 m0, 0xf00000
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_load_lds_dword v1, s[6:7]
  v_or_b32 v6, v6, v7
  v_or_b32 v6, v6, v14
  v_lshlrev_b32 v8, 3, v0
  v_add_u32 v8, 0xf00000, v8
  ds_read_b64_tr_b16 v[16:17], v8
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_or_b32 v6, v6, v16
  v_or_b32 v6, v6, v17
  global_store_dword v1, v4, s[6:7] offset:512
  global_store_dword v1, v5, s[6:7] offset:768
  global_store_dword v1, v6, s[6:7] offset:1024)",
                                      .lds_bytes = 260});
  Buffer<std::uint32_t> memory(320, 9);
  const Status status = kernel.run({memory.address()});
  ASSERT_TRUE(status.ok()) << status.text;
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(memory[i], 0u) << i;
    EXPECT_EQ(memory[64 + i], 0u) << i;
    // Beyond the 260 bytes, but within the granule of 2,048.
    EXPECT_EQ(memory[128 + i], 7u) << i;
    EXPECT_EQ(memory[192 + i], 7u) << i;
    EXPECT_EQ(memory[256 + i], 0u) << i;
  }
}

TEST(Lds, GranulesAreTheTargets) {
  for (const auto& [target, inside] : {std::pair("gfx942", 512U), std::pair("gfx950", 2048U)}) {
    const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_lshlrev_b32 v2, 6, v0
  v_mov_b32 v3, 5
  ds_write_b32 v2, v3
  ds_read_b32 v4, v2
  v_lshlrev_b32 v5, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v5, v4, s[6:7])",
                                        .target = target,
                                        .lds_bytes = 4});
    Buffer<std::uint32_t> memory(64);
    const Status status = kernel.run({memory.address()});
    ASSERT_TRUE(status.ok()) << status.text;
    for (std::uint32_t lane = 0; lane < 64; ++lane) EXPECT_EQ(memory[lane], lane * 64 < inside ? 5u : 0u) << lane;
  }
}

TEST(BufferMemory, AllLanesInRange) {
  const auto lds = run_lds(R"(
  s_mov_b64 s[8:9], s[6:7]
  s_movk_i32 s10, 0x1000
  s_mov_b32 s11, 0x27000
  v_xor_b32 v3, 63, v0
  v_lshlrev_b32 v3, 4, v3
  buffer_load_dwordx4 v[2:5], v3, s[8:11], 0 offen offset:16
  v_lshlrev_b32 v6, 4, v0
  s_movk_i32 s12, 0x400
  s_waitcnt vmcnt(0)
  buffer_store_dwordx4 v[2:5], v6, s[8:11], s12 offen
  s_waitcnt vmcnt(0)
  buffer_load_dwordx4 v[10:13], v6, s[8:11], 0 offen offset:1024
  s_waitcnt vmcnt(0)
  ds_write_b128 v6, v[10:13] offset:1024)");
  for (std::uint32_t lane = 0; lane < 64; ++lane) {
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(lds[256 + (4 * lane) + i], (4 * (63 - lane)) + 4 + i) << lane;
  }
}

// K and V take turns: what is known of one allocation must not be taken for the other's. From an address that is a
// multiple of four alone, too.
TEST(BufferMemory, TwoBuffersTakeTurns) {
  constexpr std::size_t words = 512;
  KernelSource source = with_lds(R"(
  s_load_dwordx2 s[12:13], s[0:1], 0x8
  s_mov_b64 s[8:9], s[6:7]
  s_movk_i32 s10, 0x1000
  s_mov_b32 s11, 0x27000
  s_movk_i32 s14, 0x1000
  s_mov_b32 s15, 0x27000
  v_lshlrev_b32 v3, 4, v0
  s_waitcnt lgkmcnt(0)
  buffer_load_dwordx4 v[4:7], v3, s[8:11], 0 offen
  buffer_load_dwordx4 v[8:11], v3, s[12:15], 0 offen
  buffer_load_dwordx4 v[4:7], v3, s[8:11], 0 offen offset:4
  buffer_load_dwordx4 v[8:11], v3, s[12:15], 0 offen
  s_waitcnt vmcnt(0)
  v_add_u32 v4, v4, v8
  v_add_u32 v5, v5, v9
  v_add_u32 v6, v6, v10
  v_add_u32 v7, v7, v11
  buffer_store_dwordx4 v[4:7], v3, s[12:15], 0 offen offset:2048
  s_mov_b32 m0, 0
  buffer_load_dwordx4 v3, s[12:15], 0 offen lds
  s_mov_b32 m0, 1024
  s_mov_b32 s16, 4
  buffer_load_dwordx4 v3, s[8:11], s16 offen lds
  s_waitcnt vmcnt(0))",
                                 words * 4);
  source.kernarg_bytes = 16;
  const Assembled kernel(source);
  Buffer<std::uint32_t> first(2 * words);
  Buffer<std::uint32_t> second(2 * words);
  for (std::uint32_t i = 0; i < words; ++i) {
    first[i] = i;
    second[i] = 1000 * i;
  }
  const Status status = kernel.run({first.address(), second.address()});
  ASSERT_TRUE(status.ok()) << status.text;
  const std::vector<std::uint32_t> lds = first.copy();
  const std::vector<std::uint32_t> sums = second.copy();
  for (std::uint32_t i = 0; i < 256; ++i) {
    ASSERT_EQ(lds[words + i], 1000 * i);
    ASSERT_EQ(lds[words + 256 + i], i + 1);
    ASSERT_EQ(sums[512 + i], i + 1 + (1000 * i));
  }
}

// An address and its offset are added in 32 bits.
TEST(Lds, AddressesMayBeBelowZeroBeforeTheirOffset) {
  const auto lds = run_lds(R"(
  v_lshlrev_b32 v3, 3, v0
  v_subrev_u32 v4, 32, v3
  ds_read_b64 v[6:7], v4 offset:32
  ds_read_b64_tr_b16 v[8:9], v4 offset:32
  ds_read_b64_tr_b16 v[10:11], v3
  v_xor_b32 v8, v8, v10
  v_xor_b32 v9, v9, v11
  v_or_b32 v8, v8, v9
  ds_write_b64 v4, v[6:7] offset:1056
  ds_write_b32 v1, v8 offset:1536)");
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(lds[256 + i], i);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lds[384 + i], 0U);
}

TEST(Lds, HighHalvesAreStored) {
  const auto lds = run_lds("v_mov_b32 v3, 0x12345678\nds_write_b16_d16_hi v1, v3 offset:2\nds_write_b8_d16_hi v1, v3");
  EXPECT_EQ(lds[5], 0x12340000u | 0x34u);
}

TEST(Lds, LaneAddressing) {
  const auto lds =
      run_lds("s_mov_b32 m0, 256\nds_read_addtid_b32 v3 offset:4\ns_mov_b32 m0, 0\nds_write_addtid_b32 v3 offset:1024");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lds[256 + i], 65 + i);
}

TEST(Lds, AtomicsReturnWhatWasThere) {
  const auto lds = run_lds(R"(
  v_mov_b32 v3, 0
  v_mov_b32 v4, 1.5
  ds_write_b32 v3, v3
  ds_add_rtn_f32 v5, v3, v4
  ds_write_b32 v1, v5 offset:512
  v_mov_b32 v6, 16
  v_mov_b32 v7, 5
  ds_write_b32 v6, v7
  ds_inc_rtn_u32 v8, v6, v7
  ds_write_b32 v1, v8 offset:1024
  v_mov_b32 v9, 20
  v_mov_b32 v10, 100
  ds_write_b32 v9, v10
  ds_min_i32 v9, v0
  v_sub_u32 v11, 0, v0
  v_mov_b32 v12, 24
  ds_max_u32 v12, v11)");
  EXPECT_EQ(std::bit_cast<float>(lds[0]), 96.0F);
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(std::bit_cast<float>(lds[128 + i]), 1.5F * static_cast<float>(i));
    EXPECT_EQ(lds[256 + i], (i + 5) % 6);
  }
  EXPECT_EQ(lds[5], 0u);
  EXPECT_EQ(lds[6], 0xffffffffu);
}

TEST(Lds, CompareAndStoreTakesTheExpectedValueFirst) {
  const auto lds = run_lds(R"(
  v_mov_b32 v3, 12
  v_mov_b32 v4, 3
  v_mov_b32 v5, 77
  ds_cmpst_rtn_b32 v6, v3, v4, v5
  ds_write_b32 v1, v6 offset:512)");
  EXPECT_EQ(lds[3], 77u);
  EXPECT_EQ(lds[128], 3u);
  for (std::uint32_t i = 1; i < 64; ++i) EXPECT_EQ(lds[128 + i], 77u);
}

TEST(LdsLanes, PermutesReadAndWriteByLane) {
  const auto lds = run_lds(R"(
  v_add_u32 v3, 4, v1
  v_mul_u32_u24 v4, 3, v0
  ds_bpermute_b32 v5, v3, v4
  ds_write_b32 v1, v5 offset:256
  ds_permute_b32 v6, v3, v4
  ds_write_b32 v1, v6 offset:512
  v_mov_b32 v7, 0
  ds_permute_b32 v8, v7, v4
  ds_write_b32 v1, v8 offset:768)");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(lds[64 + i], 3 * ((i + 1) % 64));
    EXPECT_EQ(lds[128 + i], 3 * ((i + 63) % 64));
    EXPECT_EQ(lds[192 + i], i == 0 ? 189u : 0u);
  }
}

TEST(LdsLanes, InactiveLanesGiveZero) {
  const auto lds = run_lds(R"(
  v_mov_b32 v5, 9
  s_mov_b64 s[8:9], exec
  s_mov_b64 exec, 0xffff
  v_add_u32 v3, 32, v1
  ds_bpermute_b32 v5, v3, v0
  s_mov_b64 exec, s[8:9]
  ds_write_b32 v1, v5 offset:256)");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lds[64 + i], i >= 16 ? 9 : i < 8 ? i + 8 : 0);
}

TEST(LdsLanes, Swizzles) {
  const auto lds = run_lds(R"(
  ds_swizzle_b32 v3, v0 offset:swizzle(QUAD_PERM, 3, 2, 1, 0)
  ds_write_b32 v1, v3 offset:256
  ds_swizzle_b32 v3, v0 offset:swizzle(BITMASK_PERM, "0011p")
  ds_write_b32 v1, v3 offset:512
  ds_swizzle_b32 v3, v0 offset:swizzle(SWAP, 16)
  ds_write_b32 v1, v3 offset:768
  ds_swizzle_b32 v3, v0 offset:swizzle(BROADCAST, 8, 2)
  ds_write_b32 v1, v3 offset:1024)");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(lds[64 + i], i ^ 3);
    EXPECT_EQ(lds[128 + i], (i & 32) | 6 | (i & 1));
    EXPECT_EQ(lds[192 + i], i ^ 16);
    EXPECT_EQ(lds[256 + i], (i & ~7u) | 2);
  }
}

// Element `index` of `bits` bits in little-endian words.
std::uint32_t element(const std::vector<std::uint32_t>& words, std::size_t index, unsigned bits) {
  const std::size_t at = index * bits;
  std::uint64_t window = words[at / 32];
  if ((at / 32) + 1 < words.size()) window |= std::uint64_t{words[(at / 32) + 1]} << 32;
  return static_cast<std::uint32_t>((window >> (at % 32)) & ((1u << bits) - 1));
}

// Lane i of each group of 16 reads `dwords` at its own address; rows of 16 elements are transposed within the group.
void check_transpose(const std::string& mnemonic, unsigned bits, unsigned dwords) {
  SCOPED_TRACE(mnemonic);
  const unsigned lane_bytes = dwords * 4;
  const Assembled kernel(KernelSource{
      .body = std::format(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mul_u32_u24 v1, {0}, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx{1} v[4:{2}], v1, s[6:7]
  ds_write_b{3} v1, v[4:{2}]
  {4} v[10:{5}], v1
  global_store_dwordx{1} v1, v[10:{5}], s[6:7] offset:{6})",
                          lane_bytes, dwords, 3 + dwords, 32 * dwords, mnemonic, 9 + dwords, 64 * lane_bytes),
      .lds_bytes = 64 * lane_bytes});
  Buffer<std::uint32_t> memory(std::size_t{2} * 64 * dwords);
  for (std::uint32_t i = 0; i < 64 * dwords; ++i) memory[i] = (i * 0x9e3779b9u) ^ (i << 13);
  const Status status = kernel.run({memory.address()});
  ASSERT_TRUE(status.ok()) << status.text;
  const auto all = memory.copy();
  const std::vector<std::uint32_t> before(all.begin(), all.begin() + 64 * dwords);
  const std::vector<std::uint32_t> after(all.begin() + 64 * dwords, all.end());
  const unsigned rows = 32 * dwords / bits;  // and elements a lane
  for (unsigned group = 0; group < 4; ++group) {
    for (unsigned lane = 0; lane < 16; ++lane) {
      for (unsigned row = 0; row < rows; ++row) {
        // Addresses are contiguous here, so a row of 16 elements is contiguous too.
        const std::size_t from = (std::size_t{group} * 16 * rows) + (std::size_t{row} * 16) + lane;
        const std::size_t to = ((std::size_t{group} * 16 + lane) * rows) + row;
        ASSERT_EQ(element(after, to, bits), element(before, from, bits)) << "lane " << lane << " row " << row;
      }
    }
  }
}

TEST(LdsLanes, TransposeReads) {
  check_transpose("ds_read_b64_tr_b16", 16, 2);
  check_transpose("ds_read_b64_tr_b8", 8, 2);
  check_transpose("ds_read_b64_tr_b4", 4, 2);
  check_transpose("ds_read_b96_tr_b6", 6, 3);
}

TEST(LdsLanes, TransposeReadTakesEachLanesOwnAddress) {
  // docs/isa.md: lanes 4k..4k+3 supply row k. Rows 256 bytes apart, as in a tile of keys.
  const auto lds = run_lds(R"(
  v_and_b32 v3, 3, v0
  v_bfe_u32 v4, v0, 2, 2
  v_lshlrev_b32 v3, 3, v3
  v_lshl_add_u32 v3, v4, 8, v3
  ds_read_b64_tr_b16 v[6:7], v3
  v_lshlrev_b32 v5, 3, v0
  ds_write_b64 v5, v[6:7] offset:1024)");
  for (std::uint32_t lane = 0; lane < 16; ++lane) {
    for (std::uint32_t row = 0; row < 4; ++row) {
      const std::uint32_t word = (64 * row) + (lane / 2);  // LDS word w holds the number w
      const std::uint32_t expected = (lane & 1) != 0 ? word >> 16 : word & 0xffff;
      const std::uint32_t got = (lds[256 + (2 * lane) + (row / 2)] >> (16 * (row & 1))) & 0xffff;
      EXPECT_EQ(got, expected) << lane << " " << row;
    }
  }
}

TEST(LdsDma, DwordsLandLaneAfterLaneBehindM0) {
  for (const char* target : {"gfx942", "gfx950"}) {
    const auto lds = run_lds(R"(
  s_mov_b32 s8, s6
  s_mov_b32 s9, s7
  s_mov_b32 s10, 1024
  s_mov_b32 s11, 0x27000
  s_movk_i32 s12, 8
  v_xor_b32 v3, 63, v0
  v_lshlrev_b32 v3, 2, v3
  s_mov_b32 m0, 1024
  buffer_load_dword v3, s[8:11], s12 offen offset:16 lds)",
                             target);
    // The global address and the LDS address both take the instruction's offset.
    for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lds[256 + 4 + i], (63 - i) + 2 + 4) << target;
  }
}

// 16 bytes a lane from a buffer of 512 bytes, beginning `skipped` bytes into it.
std::vector<std::uint32_t> run_wide_dma(unsigned skipped, unsigned to) {
  return run_lds(std::format(R"(
  s_mov_b32 s8, s6
  s_mov_b32 s9, s7
  s_mov_b32 s10, 512
  s_mov_b32 s11, 0x27000
  v_lshlrev_b32 v3, 4, v0
  s_movk_i32 s12, {}
  s_mov_b32 m0, {}
  buffer_load_dwordx4 v3, s[8:11], s12 offen lds)",
                             skipped, to));
}

TEST(LdsDma, SixteenBytesALane) {
  const auto lds = run_wide_dma(0, 512);
  // The first 512 bytes are inside the buffer; lanes beyond write zeros.
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(lds[128 + i], i < 128 ? i : 0) << i;
}

// The tile behind the last one: nothing but zeros, and only where the lanes' places are.
TEST(LdsDma, WavesOutsideTheBufferWriteZeros) {
  const auto lds = run_wide_dma(512, 256);
  for (std::uint32_t i = 0; i < 512; ++i) EXPECT_EQ(lds[i], i >= 64 && i < 320 ? 0 : i) << i;
}

TEST(LdsDma, GlobalLoadsAndSmallElements) {
  const auto lds = run_lds(R"(
  v_lshlrev_b32 v3, 4, v0
  s_mov_b32 m0, 0
  global_load_lds_dwordx4 v3, s[6:7] offset:256
  s_mov_b32 m0, 1536
  global_load_lds_ubyte v3, s[6:7])");
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(lds[64 + i], 64 + i);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lds[384 + i], (4 * i) & 0xff);
}

TEST(LdsDma, InactiveLanesWriteNothing) {
  const auto lds = run_lds(R"(
  s_mov_b32 m0, 1024
  s_mov_b64 s[10:11], exec
  s_mov_b32 exec_lo, 0xf0
  s_mov_b32 exec_hi, 0
  global_load_lds_dword v1, s[6:7]
  s_mov_b64 exec, s[10:11])");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lds[256 + i], i >= 4 && i < 8 ? i : 256 + i);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
