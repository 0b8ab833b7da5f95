// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A disassembly with its marks: what is counted, where loops begin, and that no line is lost.
#include "tools/kernel_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

const std::string disassembly =
    "some_kernel: gfx942, 9 instructions\n"
    "     0  s_mov_b32 s0, 0\n"
    "     4  ds_read_b128 v[0:3], v4\n"
    "     c  buffer_load_dwordx4 v4, s[0:3], 0 offen lds\n"
    "    14  s_waitcnt lgkmcnt(0)\n"
    "    18  s_barrier\n"
    "    1c  v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]\n"
    "    24  v_exp_f32_e32 v1, v2\n"
    "    28  s_cbranch_scc1 65529\n"
    "    2c  s_endpgm\n";

TEST(KernelListing, CountsWhatStandsBetweenBarriers) {
  const std::string text = kernel_listing(disassembly);
  EXPECT_THAT(text, HasSubstr("-- barrier 1; up to it: 5 instructions, 1 LDS reads, 1 loads to LDS\n"));
  EXPECT_THAT(text, HasSubstr("-- the end; up to it: 4 instructions, 1 matrix, 1 exp\n"));
}

// A jump into the middle of an instruction (0x10) marks no line.
TEST(KernelListing, MarksWhereALoopBegins) {
  EXPECT_THAT(kernel_listing(disassembly), ::testing::Not(HasSubstr("a loop begins")));
  std::string loop = disassembly;
  loop.replace(loop.find("65529"), 5, "65530");  // 0x28 + 4 − 24 = 0x14
  EXPECT_THAT(kernel_listing(loop), HasSubstr("-- a loop begins, 28 jumps back to here\n   wait     14  s_waitcnt"));
  // Forward is no loop.
  loop.replace(loop.find("65530"), 5, "00000");
  EXPECT_THAT(kernel_listing(loop), ::testing::Not(HasSubstr("a loop begins")));
}

TEST(KernelListing, KeepsEveryLine) {
  const std::string text = kernel_listing(disassembly);
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < disassembly.size();) {
    const std::size_t end = disassembly.find('\n', begin) + 1;
    at = text.find(disassembly.substr(begin, end - begin), at);
    ASSERT_NE(at, std::string::npos) << disassembly.substr(begin, end - begin);
    begin = end;
  }
  EXPECT_THAT(text, HasSubstr("BARRIER     18  s_barrier\n"));
  EXPECT_EQ(kernel_listing(""), "-- the end; up to it: 0 instructions\n");
}

}  // namespace
}  // namespace wavejit::tools
