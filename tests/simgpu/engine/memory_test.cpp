// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global, flat, private and buffer memory.
#include <algorithm>
#include <bit>
#include <format>
#include <set>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;

TEST(GlobalMemory, EveryWidth) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
  global_load_ubyte v10, v1, s[6:7] offset:3
  global_load_sbyte v11, v1, s[6:7] offset:3
  global_load_ushort v12, v1, s[6:7] offset:2
  global_load_sshort v13, v1, s[6:7] offset:2
  v_mov_b32 v14, -1
  global_load_short_d16 v14, v1, s[6:7]
  v_mov_b32 v15, -1
  global_load_sbyte_d16_hi v15, v1, s[6:7]
  global_load_dwordx3 v[16:18], v1, s[6:7] offset:1
  v_mov_b32 v2, s6
  v_mov_b32 v3, s7
  global_store_dwordx4 v[2:3], v[10:13], off offset:32
  global_store_dwordx4 v[2:3], v[14:17], off offset:48
  global_store_byte v[2:3], v18, off offset:64
  global_store_short_d16_hi v[2:3], v12, off offset:66
  s_mov_b64 exec, 1)");
  Buffer<std::uint32_t> memory(32);
  memory[0] = 0x89ab4567;
  memory[1] = 0x01020304;
  memory[2] = 0x05060708;
  memory[3] = 0x090a0b0c;
  const Status status = kernel.run({memory.address()}, {1, 1, 1}, {1, 1, 1});
  ASSERT_TRUE(status.ok()) << status.text;
  const auto all = memory.copy();
  EXPECT_THAT(std::vector<std::uint32_t>(all.begin() + 8, all.begin() + 17),
              ElementsAre(0x89, 0xffffff89, 0x89ab, 0xffff89ab, 0x00004567, 0x00670000, 0x0489ab45, 0x08010203, 0x07));
}

TEST(GlobalMemory, NegativeOffsetsAndScalarBases) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s6, s6, 256
  s_addc_u32 s7, s7, 0
  global_load_dword v2, v1, s[6:7] offset:-256
  global_store_dword v1, v2, s[6:7])");
  Buffer<std::uint32_t> memory(128);
  for (std::uint32_t i = 0; i < 64; ++i) memory[i] = i * 5;
  ASSERT_TRUE(kernel.run({memory.address()}).ok());
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(memory[64 + i], i * 5);
}

TEST(GlobalMemory, AddressesBeyondFourGigabytes) {
  constexpr std::size_t bytes = std::size_t{6} << 30;
  auto* large = static_cast<std::byte*>(DeviceMemory::instance().allocate(bytes, MemoryKind::device, 0));
  ASSERT_NE(large, nullptr);
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s7, s7, 1
  v_mov_b32 v2, 0x12345678
  global_store_dword v1, v2, s[6:7] offset:16
  s_mov_b64 exec, 1)");
  ASSERT_TRUE(kernel.run({reinterpret_cast<std::uint64_t>(large)}).ok());
  std::uint32_t value = 0;
  std::memcpy(&value, large + (std::size_t{1} << 32) + 16, 4);
  EXPECT_EQ(value, 0x12345678u);
  EXPECT_TRUE(DeviceMemory::instance().free(large));
}

TEST(Atomics, WorkgroupsOnAllThreadsAddUp) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  v_mov_b32 v3, 1.0
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0x3ff00000
  v_mov_b32 v6, 0x3c003c00
  v_mov_b32 v7, 0
  s_waitcnt lgkmcnt(0)
  global_atomic_add v10, v1, v2, s[6:7] sc0
  global_atomic_add_f32 v1, v3, s[6:7] offset:8
  global_atomic_add_f64 v1, v[4:5], s[6:7] offset:16
  global_atomic_smax v1, v10, s[6:7] offset:24
  global_atomic_pk_add_f16 v1, v6, s[6:7] offset:28
  v_lshlrev_b32 v11, 2, v10
  global_store_dword v11, v2, s[6:7] offset:64)");
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.threads = 4;
  scope.set(settings);
  constexpr std::uint32_t groups = 30;
  Buffer<std::uint32_t> memory(16 + (groups * 64));
  ASSERT_TRUE(kernel.run({memory.address()}, {groups, 1, 1}).ok());
  EXPECT_EQ(memory[0], groups * 64);
  EXPECT_EQ(std::bit_cast<float>(memory[2]), groups * 64.0F);
  EXPECT_EQ(std::bit_cast<double>(memory[4] | (std::uint64_t{memory[5]} << 32)), groups * 64.0);
  EXPECT_EQ(memory[6], (groups * 64) - 1);
  EXPECT_EQ(memory[7], 0x67806780u);  // 1920 as float16, twice
  // Every returned value came exactly once.
  for (std::uint32_t i = 0; i < groups * 64; ++i) EXPECT_EQ(memory[16 + i], 1u);
}

TEST(Atomics, CompareAndSwapTakesTheNewValueFirst) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 99
  v_mov_b32 v3, 7
  s_mov_b64 exec, 3
  s_waitcnt lgkmcnt(0)
  global_atomic_cmpswap v4, v1, v[2:3], s[6:7] sc0
  v_lshlrev_b32 v5, 2, v0
  global_store_dword v5, v4, s[6:7] offset:8)");
  Buffer<std::uint32_t> memory(4, 7);
  ASSERT_TRUE(kernel.run({memory.address()}).ok());
  EXPECT_THAT(memory.copy(), ElementsAre(99, 7, 7, 99));
}

TEST(Atomics, SixtyFourBits) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, -1
  v_mov_b32 v3, 0
  s_mov_b64 exec, 3
  s_waitcnt lgkmcnt(0)
  global_atomic_add_x2 v1, v[2:3], s[6:7]
  global_atomic_smin_x2 v1, v[2:3], s[6:7] offset:8
  global_atomic_inc_x2 v1, v[2:3], s[6:7] offset:16)");
  Buffer<std::uint64_t> memory(3, 5);
  memory[1] = ~std::uint64_t{0};
  ASSERT_TRUE(kernel.run({memory.address()}).ok());
  EXPECT_THAT(memory.copy(), ElementsAre(5 + (2 * 0xffffffffULL), ~std::uint64_t{0}, 7));
}

TEST(FlatMemory, ReachesLdsAndPrivateMemoryThroughTheirApertures) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_mov_b64 s[8:9], src_shared_base
  s_mov_b64 s[10:11], src_private_base
  v_lshlrev_b32 v2, 2, v0
  v_mov_b32 v3, s9
  ds_write_b32 v2, v0
  flat_load_dword v4, v[2:3]
  v_mov_b32 v12, 8
  v_mov_b32 v13, s11
  v_add_u32 v7, 100, v0
  flat_store_dword v[12:13], v7 offset:4
  scratch_load_dword v8, off, off offset:12
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_add_u32 v4, v4, v8
  v_mov_b32 v15, s7
  v_add_co_u32 v14, vcc, s6, v2
  v_addc_co_u32 v15, vcc, 0, v15, vcc
  flat_store_dword v[14:15], v4)",
                                      .lds_bytes = 256,
                                      .private_bytes = 32});
  Buffer<std::uint32_t> out(64);
  const Status status = kernel.run({out.address()});
  ASSERT_TRUE(status.ok()) << status.text;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], (2 * i) + 100);
}

TEST(PrivateMemory, BelongsToALane) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_and_b32 v2, 7, v0
  v_lshlrev_b32 v2, 2, v2
  s_movk_i32 s8, 16
  scratch_store_dword v2, v0, s8
  scratch_load_dword v3, v2, off offset:16
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v3, s[6:7])",
                                      .private_bytes = 48});
  Buffer<std::uint32_t> out(64);
  ASSERT_TRUE(kernel.run({out.address()}).ok());
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i);
}

// s[8:11] describes the first `records` bytes of the buffer; `body` leaves v[10:13] to be stored.
std::vector<std::uint32_t> run_buffer(std::uint32_t records, const std::string& body, std::size_t words = 512) {
  const Assembled kernel(KernelSource{.body = std::format(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_load_dwordx2 s[6:7], s[0:1], 0x10
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  {}
  s_waitcnt vmcnt(0)
  global_store_dwordx4 v1, v[10:13], s[6:7])",
                                                          body),
                                      .kernarg_bytes = 24});
  Buffer<std::uint32_t> memory(words);
  for (std::uint32_t i = 0; i < words; ++i) memory[i] = 1000 + i;
  Buffer<std::uint32_t> out(256);
  const std::uint64_t upper = records | (std::uint64_t{0x27000} << 32);
  const Status status = kernel.run({memory.address(), upper, out.address()});
  EXPECT_TRUE(status.ok()) << status.text;
  return out.copy();
}

TEST(BufferMemory, ReadsBeyondTheRangeGiveZeroDwordByDword) {
  // 16 bytes a lane from a buffer of 104 bytes: lane 6 gets two dwords.
  const auto out = run_buffer(104, "buffer_load_dwordx4 v[10:13], v1, s[8:11], 0 offen");
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], i < 26 ? 1000 + i : 0) << i;
}

TEST(BufferMemory, TheScalarOffsetShrinksTheRange) {
  const auto out = run_buffer(104, "s_movk_i32 s12, 40\nbuffer_load_dwordx4 v[10:13], v1, s[8:11], s12 offen");
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], i < 16 ? 1010 + i : 0) << i;
}

// All lanes at once where none has anything to read: beyond the range, and where the scalar offset leaves no range.
TEST(BufferMemory, WavesOutsideTheRangeReadZerosAndStoreNothing) {
  for (const char* offset : {"s_movk_i32 s12, 0x68", "s_movk_i32 s12, 0x7000", "s_mov_b32 s12, -1"}) {
    const auto out = run_buffer(104, std::format(R"(
  {}
  buffer_store_dwordx4 v[0:3], v1, s[8:11], s12 offen
  buffer_load_dwordx4 v[10:13], v1, s[8:11], s12 offen
  buffer_load_dwordx2 v[14:15], v1, s[8:11], s12 offen
  s_waitcnt vmcnt(0)
  v_or_b32 v10, v10, v14
  v_or_b32 v11, v11, v15)",
                                                 offset));
    for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], 0U) << offset << " " << i;
  }
  const auto after = run_buffer(104, R"(
  s_movk_i32 s12, 0x68
  buffer_store_dwordx4 v[0:3], v1, s[8:11], s12 offen
  s_movk_i32 s10, 0x7ff
  buffer_load_dwordx4 v[10:13], v1, s[8:11], 0 offen)");
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(after[i], 1000 + i) << i;
}

// The first byte of the lowest lane is inside: not all of the wave is outside.
TEST(BufferMemory, TheFirstLaneMayBeTheOnlyOneInside) {
  const auto out = run_buffer(104, R"(
  s_movk_i32 s12, 0x64
  buffer_load_dwordx4 v[10:13], v1, s[8:11], s12 offen)");
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], i == 0 ? 1025U : 0U) << i;
}

TEST(BufferMemory, PairsOfWordsFromAddressesOfEveryKind) {
  for (const std::uint32_t shift : {0U, 4U, 8U, 2U}) {
    const auto out = run_buffer(2048, std::format(R"(
  v_xor_b32 v2, 63, v0
  v_lshlrev_b32 v2, 3, v2
  v_mov_b32 v12, 0
  v_mov_b32 v13, 0
  s_movk_i32 s12, {}
  buffer_load_dwordx2 v[10:11], v2, s[8:11], s12 offen)",
                                                  shift));
    for (std::uint32_t lane = 0; lane < 64; ++lane) {
      for (std::uint32_t i = 0; i < 2; ++i) {
        const std::uint64_t at = (8 * (63 - lane)) + shift + (4 * i);
        const std::uint64_t words = (1000 + (at / 4)) | ((1001 + (at / 4)) << 32);
        EXPECT_EQ(out[(4 * lane) + i], static_cast<std::uint32_t>(words >> (8 * (at % 4)))) << shift << " " << lane;
      }
    }
  }
}

TEST(BufferMemory, StructuresCountRecords) {
  // 10 records of 8 bytes; the index register chooses the record.
  const auto out = run_buffer(10, R"(
  s_or_b32 s9, s9, 0x80000
  v_mov_b32 v10, 5
  v_mov_b32 v11, 5
  v_mov_b32 v12, 5
  v_mov_b32 v13, 5
  buffer_load_dwordx2 v[10:11], v0, s[8:11], 0 idxen)");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[4 * i], i < 10 ? 1000 + (2 * i) : 0) << i;
    EXPECT_EQ(out[(4 * i) + 1], i < 10 ? 1001 + (2 * i) : 0) << i;
  }
}

TEST(BufferMemory, StoresAndAtomicsBeyondTheRangeDoNothing) {
  const auto out = run_buffer(104, R"(
  v_lshlrev_b32 v2, 2, v0
  v_mov_b32 v3, 1
  buffer_atomic_add v3, v2, s[8:11], 0 offen sc0
  buffer_store_dwordx4 v[4:7], v1, s[8:11], 0 offen offset:96
  buffer_load_dwordx4 v[10:13], v1, s[8:11], 0 offen
  v_mov_b32 v10, v3)");
  // Atomics returned the old values inside and zero outside; the store changed the last two dwords only.
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[4 * i], i < 26 ? 1000 + i : 0);
  EXPECT_EQ(out[5], 1006u);
}

TEST(BufferMemory, ScalarLoadsAreBoundedToo) {
  const auto out = run_buffer(104, R"(
  s_buffer_load_dwordx4 s[16:19], s[8:11], 0x60
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v10, s16
  v_mov_b32 v11, s17
  v_mov_b32 v12, s18
  v_mov_b32 v13, s19)");
  EXPECT_EQ(out[0], 1024u);
  EXPECT_EQ(out[1], 1025u);
  EXPECT_EQ(out[2], 0u);
  EXPECT_EQ(out[3], 0u);
}

TEST(DeviceMemoryTable, AllocatesAlignsAndRefuses) {
  DeviceMemory& memory = DeviceMemory::instance();
  void* small = memory.allocate(1, MemoryKind::device, 0);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(small) % 256, 0u);
  EXPECT_EQ(memory.lookup(small).bytes, 1u);
  EXPECT_EQ(memory.lookup(static_cast<char*>(small) + 1).base, 0u);
  EXPECT_FALSE(memory.free(static_cast<char*>(small) + 1));
  EXPECT_TRUE(memory.free(small));
  EXPECT_FALSE(memory.free(small));
  EXPECT_EQ(memory.allocate(~std::size_t{0} / 2, MemoryKind::device, 0), nullptr);
  void* aligned = memory.allocate(100, MemoryKind::device, 0, 1 << 21);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(aligned) % (1 << 21), 0u);
  EXPECT_TRUE(memory.free(aligned));
}

TEST(DeviceMemoryTable, FreedRangesAreUsedAgainAndClean) {
  DeviceMemory& memory = DeviceMemory::instance();
  std::set<void*> seen;
  for (int i = 0; i < 100; ++i) {
    void* place = memory.allocate(1 << 20, MemoryKind::device, 0);
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(*static_cast<std::uint32_t*>(place), 0u);
    *static_cast<std::uint32_t*>(place) = 1;
    seen.insert(place);
    EXPECT_TRUE(memory.free(place));
  }
  EXPECT_EQ(seen.size(), 1u);
}

TEST(DeviceMemoryTable, AdoptedHostMemoryIsReachable) {
  std::vector<std::uint32_t> host(64);
  DeviceMemory& memory = DeviceMemory::instance();
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v0, s[6:7])");
  const auto address = reinterpret_cast<std::uint64_t>(host.data());
  EXPECT_FALSE(kernel.run({address}).ok());
  ASSERT_TRUE(memory.adopt(host.data(), 256, MemoryKind::host_registered, 0));
  EXPECT_FALSE(memory.adopt(host.data() + 1, 4, MemoryKind::host_registered, 0));
  EXPECT_TRUE(kernel.run({address}).ok());
  EXPECT_EQ(host[63], 63u);
  EXPECT_TRUE(memory.forget(host.data()));
  EXPECT_FALSE(kernel.run({address}).ok());
}

}  // namespace
}  // namespace wavejit::simgpu::testing
