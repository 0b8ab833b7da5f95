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

// What a launch may do with LDS and a program may not mean.
struct LocalCase {
  const char* name;
  const char* body;
  const char* text;  // empty: nothing is said
};
void PrintTo(const LocalCase& c, std::ostream* to) { *to << c.name; }

class LocalBounds : public ::testing::TestWithParam<LocalCase> {};

TEST_P(LocalBounds, AreThoseThatWereAskedFor) {
  const Assembled kernel(KernelSource{
      .body = std::string(prologue) + "s_mov_b64 s[8:9], src_shared_base\n" + GetParam().body, .lds_bytes = 1024});
  Buffer<std::uint32_t> memory(256);
  const Checked checked = run_checked(kernel, {memory.address()}, {.checks = static_cast<unsigned>(Check::bounds)});
  if (*GetParam().text == 0) {
    EXPECT_THAT(checked.findings, IsEmpty());
    return;
  }
  ASSERT_THAT(checked.names(), ElementsAre("bounds"));
  EXPECT_THAT(checked.text(), HasSubstr(GetParam().text));
  EXPECT_THAT(checked.text(), HasSubstr("the workgroup has 1024 bytes of LDS"));
  // Nobody asked: nothing ends.
  EXPECT_TRUE(kernel.run({memory.address()}).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Each, LocalBounds,
    ::testing::Values(LocalCase{"Inside", "ds_write_b32 v1, v0 offset:768", ""},
                      LocalCase{"Read", "v_mov_b32 v2, 0xf00000\nds_read_b64 v[4:5], v2",
                                "reads 8 bytes at LDS address 0xf00000"},
                      LocalCase{"Written", "v_mov_b32 v2, 0xf00000\nds_write_b32 v2, v0", "hardware drops it"},
                      LocalCase{"LastGranule", "ds_write_b32 v1, v0 offset:1020", "what is left of the last granule"},
                      LocalCase{"SecondOfTwo", "ds_read2st64_b32 v[4:5], v1 offset0:0 offset1:4",
                                "reads 4 bytes at LDS address 0x400"},
                      LocalCase{"Flat", "v_mov_b32 v2, 0x10000\nv_mov_b32 v3, s9\nflat_load_dword v4, v[2:3]",
                                "reads 4 bytes at LDS address 0x10000"},
                      LocalCase{"Dma", "s_mov_b32 m0, 0x3f0\ns_nop 0\nglobal_load_lds_dwordx4 v1, s[6:7]",
                                "writes 16 bytes at LDS address 0x400"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wavejit::simgpu::testing
