// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses that stray from the allocation of their base into another one.
#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Stores at the first pointer plus the second argument.
constexpr const char* body = R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  v_add_u32 v1, s10, v1
  global_store_dword v1, v0, s[8:9])";
constexpr const char* buffer_body = R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s12, s10
  s_mov_b32 s10, -1
  s_mov_b32 s11, 0x27000
  buffer_load_dword v2, v1, s[8:11], s12 offen)";

class Bounds : public ::testing::TestWithParam<const char*> {};

TEST_P(Bounds, AnotherAllocationIsReported) {
  const Assembled kernel(KernelSource{.body = GetParam(), .kernarg_bytes = 16});
  Buffer<std::uint32_t> first(64);
  Buffer<std::uint32_t> second(64);
  const std::uint64_t distance = second.address() - first.address();
  const Checked checked = run_checked(kernel, {first.address(), distance});
  ASSERT_THAT(checked.names(), ElementsAre("bounds"));
  EXPECT_THAT(checked.text(), HasSubstr("from the base"));
}
TEST_P(Bounds, TheSameAllocationIsFine) {
  const Assembled kernel(KernelSource{.body = GetParam(), .kernarg_bytes = 16});
  Buffer<std::uint32_t> first(128);
  EXPECT_THAT(run_checked(kernel, {first.address(), 256}).findings, IsEmpty());
}
// rocBLAS takes four bytes off the base, and adds them to the offsets.
TEST_P(Bounds, ABaseALittleInFrontIsFine) {
  const Assembled kernel(KernelSource{.body = GetParam(), .kernarg_bytes = 16});
  Buffer<std::uint32_t> first(64);
  EXPECT_THAT(run_checked(kernel, {first.address() - 4, 4}).findings, IsEmpty());
}
TEST_P(Bounds, ABaseFarInFrontIsReported) {
  const Assembled kernel(KernelSource{.body = GetParam(), .kernarg_bytes = 16});
  Buffer<std::uint32_t> first(64);
  constexpr std::uint64_t distance = 1 << 20;
  const Checked checked = run_checked(kernel, {first.address() - distance, distance});
  ASSERT_THAT(checked.names(), ElementsAre("bounds"));
  EXPECT_THAT(checked.text(), HasSubstr("which lies in none"));
}

INSTANTIATE_TEST_SUITE_P(Each, Bounds, ::testing::Values(body, buffer_body),
                         [](const auto& info) { return info.param == body ? "Global" : "Buffer"; });

}  // namespace
}  // namespace wavejit::simgpu::testing
