// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waves have as many lanes as their target says. No target of the table has waves of 32 yet: here a gfx950 has, made up
// for the test. Places of its registers that are no lanes hold noise, so that whatever touches them shows.
#include <array>
#include <format>
#include <numeric>

#include "assembled.h"
#include "boards/board.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/process/check.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

class OfSize {
 public:
  OfSize(int lanes, const KernelSource& source) : device_(0, board_of(lanes)) {
    auto module = device_.load(assemble(source));
    if (!module) {
      ADD_FAILURE() << module.error().text;
      return;
    }
    module_ = *module;
    kernel_ = module_->find_kernel("k");
  }
  Status run(const std::vector<std::uint64_t>& arguments, std::uint32_t threads) {
    if (kernel_ == nullptr) return {.code = -1, .text = "not loaded"};
    return device_.launch(
        {.kernel = kernel_, .workgroup_size = {threads, 1, 1}, .kernarg = std::as_bytes(std::span(arguments))});
  }

 private:
  static boards::Board board_of(int lanes) {
    boards::Board board = *boards::find_product("gfx950");
    board.wave_size = lanes;
    return board;
  }
  Device device_;
  std::shared_ptr<Module> module_;
  const Kernel* kernel_ = nullptr;
};

void check_all(std::uint32_t but_for = 0) {
  Settings settings = Process::instance().settings();
  settings.checks = all_checks & ~but_for;
  settings.arrival = Arrival::late;
  Process::instance().set_settings(settings);
}

class WaveSize : public ::testing::TestWithParam<int> {
 protected:
  ScopedSettings settings_;
};
INSTANTIATE_TEST_SUITE_P(Lanes, WaveSize, ::testing::Values(64, 32), ::testing::PrintToStringParamName());

// Four words of each thread: from the next lane, from the lane before, from lane 33, its own number.
const KernelSource across = {.body = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_mbcnt_lo_u32_b32 v1, -1, 0
  v_mbcnt_hi_u32_b32 v7, -1, v1
  v_lshlrev_b32 v2, 4, v0
  v_lshlrev_b32 v3, 2, v7
  v_add_u32 v3, 4, v3
  ds_bpermute_b32 v4, v3, v7
  v_mov_b32_dpp v5, v7 wave_ror:1 row_mask:0xf bank_mask:0xf
  s_mov_b32 s12, 33
  v_readlane_b32 s13, v7, s12
  s_waitcnt lgkmcnt(0)
  s_nop 1
  v_mov_b32 v6, s13
  global_store_dwordx4 v2, v[4:7], s[8:9])"};

TEST_P(WaveSize, LanesKnowTheirNeighbours) {
  constexpr unsigned threads = 128;
  const auto lanes = static_cast<unsigned>(GetParam());
  OfSize kernel(GetParam(), across);
  for (const bool checked : {false, true}) {
    if (checked) check_all();
    Buffer<std::array<std::uint32_t, 4>> found(threads);
    const Status status = kernel.run({found.address()}, threads);
    ASSERT_TRUE(status.ok()) << status.text;
    for (unsigned thread = 0; thread < threads; ++thread) {
      const unsigned lane = thread % lanes;
      const std::array<std::uint32_t, 4> wanted = {(lane + 1) % lanes, (lane + lanes - 1) % lanes, 33 % lanes, lane};
      EXPECT_EQ(found[thread], wanted) << thread;
    }
  }
}

// EXEC of a last wave that is not whole, and what writes all of EXEC.
TEST_P(WaveSize, ExecIsOfLanes) {
  const auto lanes = static_cast<unsigned>(GetParam());
  OfSize partial(GetParam(), {.body = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshlrev_b32 v2, 3, v0
  v_mov_b32 v4, exec_lo
  v_mov_b32 v5, exec_hi
  s_waitcnt lgkmcnt(0)
  global_store_dwordx2 v2, v[4:5], s[8:9])"});
  constexpr unsigned threads = 100;
  Buffer<std::uint64_t> found(threads);
  const Status status = partial.run({found.address()}, threads);
  ASSERT_TRUE(status.ok()) << status.text;
  for (unsigned thread = 0; thread < threads; ++thread) {
    const unsigned active = std::min(threads - (thread / lanes * lanes), lanes);
    EXPECT_EQ(found[thread], ~std::uint64_t{0} >> (64 - active)) << thread;
  }
  // Nothing is stored where places that are no lanes point.
  OfSize whole(GetParam(), {.body = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshlrev_b32 v2, 2, v0
  s_mov_b64 exec, -1
  v_mov_b32 v4, 7
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v4, s[8:9])"});
  Buffer<std::uint32_t> sevens(128);
  const Status all = whole.run({sevens.address()}, 128);
  ASSERT_TRUE(all.ok()) << all.text;
  EXPECT_EQ(sevens.copy(), std::vector<std::uint32_t>(128, 7));
}

// Thread t's 16 bytes go through a buffer, LDS and LDS DMA to thread t xor 64; transposed, its 16 lanes share them.
const KernelSource through_memory = {.body = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  v_xor_b32 v2, 0x400, v1
  v_lshlrev_b32 v3, 3, v0
  v_readlane_b32 s16, v1, 0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[8:9], s[4:5]
  s_mov_b32 s10, 2048
  s_mov_b32 s11, 0x00027000
  s_mov_b64 s[12:13], s[6:7]
  s_mov_b32 s14, 5120
  s_mov_b32 s15, 0x00027000
  s_add_u32 m0, s16, 2048
  buffer_load_dwordx4 v[4:7], v1, s[8:11], 0 offen
  buffer_load_dwordx4 v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_write_b128 v1, v[4:7]
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b128 v[8:11], v2
  ds_read_b128 v[12:15], v2 offset:2048
  ds_read_b64_tr_b16 v[16:17], v3
  s_waitcnt lgkmcnt(0)
  buffer_store_dwordx4 v[8:11], v1, s[12:15], 0 offen
  buffer_store_dwordx4 v[12:15], v1, s[12:15], 0 offen offset:2048
  s_movk_i32 s17, 4096
  buffer_store_dwordx2 v[16:17], v3, s[12:15], s17 offen)",
                                     .kernarg_bytes = 16,
                                     .lds_bytes = 4096};

TEST_P(WaveSize, MemoryIsReachedByLanesAlone) {
  constexpr unsigned words = 512;
  OfSize kernel(GetParam(), through_memory);
  for (const bool checked : {false, true}) {
    // The host's own writes are not known here.
    if (checked) check_all(static_cast<std::uint32_t>(Check::uninitialised));
    Buffer<std::uint32_t> from(words);
    Buffer<std::uint32_t> to(1280, 0);
    for (std::uint32_t i = 0; i < words; ++i) from[i] = i * 0x10001U;
    const Status status = kernel.run({from.address(), to.address()}, 128);
    ASSERT_TRUE(status.ok()) << status.text;
    for (std::uint32_t i = 0; i < words; ++i) {
      EXPECT_EQ(to[i], from[i ^ 256U]) << i;
      EXPECT_EQ(to[512 + i], from[i ^ 256U]) << i;
    }
    // Lanes 16g … 16g + 15 read four rows of 16 halves; lane n has column n.
    for (std::uint32_t thread = 0; thread < 128; ++thread) {
      const auto half = [&](std::uint32_t row) {
        const std::uint32_t at = (thread / 16 * 64) + (16 * row) + (thread % 16);
        return (from[at / 2] >> (16 * (at % 2))) & 0xffffU;
      };
      EXPECT_EQ(to[1024 + (2 * thread)], half(0) | (half(1) << 16)) << thread;
      EXPECT_EQ(to[1025 + (2 * thread)], half(2) | (half(3) << 16)) << thread;
    }
  }
}

TEST_P(WaveSize, PrivateMemoryIsOfLanes) {
  OfSize kernel(GetParam(), {.body = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshlrev_b32 v2, 2, v0
  scratch_store_dword off, v0, off offset:12
  s_waitcnt vmcnt(0)
  scratch_load_dword v4, off, off offset:12
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v2, v4, s[8:9])",
                             .private_bytes = 16});
  check_all();
  Buffer<std::uint32_t> found(128);
  const Status status = kernel.run({found.address()}, 128);
  ASSERT_TRUE(status.ok()) << status.text;
  for (std::uint32_t thread = 0; thread < 128; ++thread) EXPECT_EQ(found[thread], thread);
}

// A matrix instruction spreads over as many lanes as its row says, and other waves have none of it.
TEST(WaveSizes, MatrixInstructionsAreOfOneSize) {
  const KernelSource source = {.body = "v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[4:5], 0"};
  OfSize of_64(64, source);
  EXPECT_TRUE(of_64.run({0}, 64).ok());
  OfSize of_32(32, source);
  const Status refused = of_32.run({0}, 64);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.text, HasSubstr("v_mfma_f32_32x32x8_f16"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
