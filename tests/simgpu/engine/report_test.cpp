// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is reported, with which words, and how the launch ends.
#include <algorithm>
#include <format>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* store_v0 = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v0, s[6:7])";

TEST(Report, StoresBehindAnAllocationNameEverything) {
  const Assembled kernel{std::string(store_v0)};
  Buffer<std::uint32_t> out(40, 7);
  const Status status = kernel.run({out.address()});
  EXPECT_EQ(status.code, hip_error_illegal_address);
  EXPECT_THAT(
      status.text,
      AllOf(HasSubstr("kernel k"), HasSubstr("global_store_dword v1, v0, s[6:7]"), HasSubstr("offset 0x10 of k"),
            HasSubstr("workgroup (0, 0, 0), wave 0, lane 40"), HasSubstr("writes 4 bytes"),
            HasSubstr("0 bytes behind the end of the nearest allocation"), HasSubstr("of 160 bytes")));
  EXPECT_THAT(Process::instance().take_reports(1 << 20), HasSubstr(status.text));
}

TEST(Report, FreedMemoryIsGone) {
  const Assembled kernel{std::string(store_v0)};
  std::uint64_t address = 0;
  {
    Buffer<std::uint32_t> out(64);
    address = out.address();
    ASSERT_TRUE(kernel.run({address}).ok());
  }
  EXPECT_EQ(kernel.run({address}).code, hip_error_illegal_address);
}

TEST(Report, NullPointers) {
  const Assembled kernel{std::string(store_v0)};
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_illegal_address);
  EXPECT_THAT(status.text, HasSubstr("writes 4 bytes at 0x0"));
}

TEST(Report, ReadsBehindTheArguments) {
  const Assembled kernel{std::string("s_load_dwordx2 s[6:7], s[0:1], 0x10")};
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_illegal_address);
  EXPECT_THAT(status.text, AllOf(HasSubstr("s_load_dwordx2 s[6:7], s[0:1], 0x10"), HasSubstr("kernarg segment of 16")));
}

TEST(Report, TheLowestFailingWorkgroupWhateverTheThreads) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 2
  v_mov_b32 v1, s8
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v0, s[6:7])");
  for (const std::uint32_t threads : {1u, 4u}) {
    const ScopedSettings scope;
    Settings settings = scope.before();
    settings.threads = threads;
    scope.set(settings);
    Buffer<std::uint32_t> out(23);
    const Status status = kernel.run({out.address()}, {1000, 1, 1});
    EXPECT_THAT(status.text, HasSubstr("workgroup (23, 0, 0)"));
  }
}

// However late a thread begins with what it was handed out.
TEST(Report, WorkgroupsBeforeTheFailedOneStillRun) {
  Launch launch;
  EXPECT_TRUE(launch.runs(25));
  launch.fail(24, 1, "of 24");
  EXPECT_TRUE(launch.runs(23));
  EXPECT_FALSE(launch.runs(25));
  launch.fail(23, 2, "of 23");
  launch.fail(24, 3, "of 24, again");
  EXPECT_TRUE(launch.failed());
  EXPECT_FALSE(launch.runs(24));
  EXPECT_EQ(launch.failure, "of 23");
  EXPECT_EQ(launch.failure_code, 2);
}

TEST(Report, UnknownBytesAreNamedNotSkipped) {
  const Assembled kernel{std::string("s_nop 0\n.long 0xffffffff")};
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_launch_failure);
  EXPECT_THAT(status.text,
              AllOf(HasSubstr("no instruction of the target"), HasSubstr("ffffffff"), HasSubstr("offset 0x4")));
}

TEST(Report, UnknownInstructionsAreNamedNotSkipped) {
  const Assembled kernel{std::string("s_nop 0\ns_cbranch_i_fork s[4:5], 4")};
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_launch_failure);
  EXPECT_THAT(status.text, AllOf(HasSubstr("s_cbranch_i_fork"), HasSubstr("does not know")));
}

TEST(Report, UnknownInstructionsThatAreNotReachedDoNotMatter) {
  const Assembled kernel{std::string("s_branch over\n.long 0xffffffff\nover:")};
  EXPECT_TRUE(kernel.run({0}).ok());
}

TEST(Report, TrapsEndTheLaunch) {
  const Assembled kernel{std::string("s_trap 2")};
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_launch_failure);
  EXPECT_THAT(status.text, HasSubstr("trap 2"));
}

TEST(Report, RunningOffTheEnd) {
  // s_endpgm is jumped over; what follows is the end of the code.
  const Assembled kernel(KernelSource{.body = "s_branch behind", .after = "behind:\n  s_nop 0\n"});
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_launch_failure);
  EXPECT_THAT(status.text, HasSubstr("ran off the end"));
}

TEST(Report, JumpsToNowhere) {
  const Assembled kernel{std::string("s_mov_b32 s8, 0x1000\ns_mov_b32 s9, 0\ns_setpc_b64 s[8:9]")};
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_launch_failure);
  EXPECT_THAT(status.text, HasSubstr("jump to 0x1000"));
}

TEST(Report, PrivateMemoryOutOfBounds) {
  const Assembled kernel(
      KernelSource{.body = "v_mov_b32 v1, 60\nscratch_store_dwordx2 v1, v[2:3], off", .private_bytes = 64});
  const Status status = kernel.run({0});
  EXPECT_EQ(status.code, hip_error_illegal_address);
  EXPECT_THAT(status.text, HasSubstr("a lane has 64 bytes of private memory"));
}

TEST(Report, UnalignedAtomics) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 2
  s_waitcnt lgkmcnt(0)
  global_atomic_add v1, v0, s[6:7])");
  Buffer<std::uint32_t> out(4);
  const Status status = kernel.run({out.address()});
  EXPECT_EQ(status.code, hip_error_illegal_address);
  EXPECT_THAT(status.text, HasSubstr("not a multiple of 4"));
}

TEST(Report, BuffersThatPromiseMoreThanWasAllocated) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_mov_b32 s10, 0x2000
  s_mov_b32 s11, 0x27000
  s_mov_b32 s6, 0x1000
  s_waitcnt lgkmcnt(0)
  buffer_load_dword v1, off, s[8:11], s6)");
  Buffer<std::uint32_t> out(64);
  const Status status = kernel.run({out.address()});
  EXPECT_EQ(status.code, hip_error_illegal_address);
  EXPECT_THAT(status.text, HasSubstr("reads 4 bytes"));
}

TEST(Report, TransposeReadsNeedAllLanes) {
  const Assembled kernel(
      KernelSource{.body = "s_mov_b64 exec, 15\nv_mov_b32 v1, 0\nds_read_b64_tr_b16 v[2:3], v1", .lds_bytes = 64});
  EXPECT_THAT(kernel.run({0}).text, HasSubstr("EXEC is 0xf"));
}

TEST(Report, ALaunchAfterAFaultIsAFreshStart) {
  const Assembled kernel{std::string(store_v0)};
  EXPECT_FALSE(kernel.run({16}).ok());
  Buffer<std::uint32_t> out(64);
  EXPECT_TRUE(kernel.run({out.address()}).ok());
  EXPECT_EQ(out[63], 63u);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
