// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What counts on the order of loads into LDS, and what does not, as machine code says it.
#include "kernels/lds_dma_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "assembled.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* load = "buffer_load_dword v1, s[8:11], 0 offen lds\n";
constexpr const char* load_register = "buffer_load_dword v2, v1, s[8:11], 0 offen\n";
const std::string use = "v_add_u32 v3, v2, v2\n";

std::string found(const std::string& body) { return counts_on_dma_order(simgpu::testing::assemble({.body = body})); }

TEST(LdsDmaOrder, ACountInFrontOfABarrierNeedsIt) {
  const std::string loads = std::string("s_mov_b32 m0, 0\ns_nop 0\n") + load + load;
  EXPECT_THAT(found(loads + "s_waitcnt vmcnt(1)\ns_barrier\n"), HasSubstr("'s_barrier' is in need of 'buffer_load"));
  EXPECT_THAT(found(loads + "s_waitcnt vmcnt(0)\ns_barrier\n"), IsEmpty());
  EXPECT_THAT(found(loads + "s_waitcnt vmcnt(1)\ns_waitcnt vmcnt(0)\ns_barrier\n"), IsEmpty());
  // A count that waits for none of them.
  EXPECT_THAT(found(loads + "s_waitcnt vmcnt(2)\ns_barrier\n"), IsEmpty());
}

TEST(LdsDmaOrder, OnAnyWay) {
  const std::string start = "s_mov_b32 m0, 0\ns_nop 0\ns_cmp_eq_u32 s2, s2\n";
  EXPECT_THAT(found(start + load + "s_cbranch_scc1 .Lmeet\n" + load + ".Lmeet:\ns_waitcnt vmcnt(1)\ns_barrier\n"),
              HasSubstr("s_barrier"));
  const std::string turn = std::string("s_waitcnt vmcnt(1)\ns_barrier\n") + load + "s_cbranch_scc1 .Lturn\n";
  EXPECT_THAT(found(start + load + ".Lturn:\n" + turn), HasSubstr("s_barrier"));
}

TEST(LdsDmaOrder, RegistersNeedItIfLoadsIntoLdsStandBehind) {
  const std::string start = "s_mov_b32 m0, 0\ns_nop 0\n";
  const std::string end = "s_waitcnt vmcnt(0)\ns_barrier\n";
  EXPECT_THAT(found(start + load_register + load + "s_waitcnt vmcnt(1)\n" + use + end), HasSubstr("v_add_u32"));
  EXPECT_THAT(found(start + load + load_register + "s_waitcnt vmcnt(0)\n" + use + end), IsEmpty());
  // Loads into registers keep their order among themselves: one of two is there, wherever the load into LDS is.
  const std::string another = "buffer_load_dword v5, v1, s[8:11], 0 offen\n";
  EXPECT_THAT(found(start + load + load_register + another + "s_waitcnt vmcnt(1)\n" + use + end), IsEmpty());
}

// It reads its tiles without a barrier, and may read others while a count waits for a register.
TEST(LdsDmaOrder, ASingleWaveNeedsItForWhatItWaitsFor) {
  const std::string start = "s_mov_b32 m0, 0\ns_nop 0\n";
  const std::string read = "ds_read_b32 v4, v1\n";
  EXPECT_THAT(found(start + load + load + "s_waitcnt vmcnt(1)\n" + read), HasSubstr("ds_read_b32"));
  EXPECT_THAT(found(start + load + load + "s_waitcnt vmcnt(0)\n" + read), IsEmpty());
  EXPECT_THAT(found(start + load + load_register + load_register + "s_waitcnt vmcnt(1)\n" + read), IsEmpty());
}

TEST(LdsDmaOrder, KindsHaveNamesAndAnswers) {
  bool some = false;
  bool others = false;
  for (const DmaKind& kind : dma_kinds()) {
    EXPECT_NE(kind.name, "");
    some = some || kind.needs_order;
    others = others || !kind.needs_order;
  }
  EXPECT_TRUE(some && others);
}

}  // namespace
}  // namespace wavejit::tests
