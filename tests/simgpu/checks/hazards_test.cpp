// One wait state too few, and exactly enough, for each rule.
#include <format>
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string name;
  std::string target;
  std::string producer;
  int needed;
  std::string consumer;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Hazard : public ::testing::TestWithParam<Case> {};

constexpr const char* wide = "v_mfma_f32_32x32x16_f16 v[16:31], v[0:3], v[4:7], v[16:31]";
constexpr const char* older = "v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[4:5], v[16:31]";

const Case cases[] = {
    {"MatrixToVector950", "gfx950", wide, 12, "v_add_f32 v8, v16, v16"},
    {"MatrixToVector942", "gfx942", older, 11, "v_add_f32 v8, v16, v16"},
    {"SmallMatrixToVector950", "gfx950", "v_mfma_f32_16x16x32_f16 v[16:19], v[0:3], v[4:7], 0", 8,
     "v_add_f32 v8, v16, v16"},
    {"TwoPassMatrixToVector950", "gfx950", "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[0:1], v[4:5], 0", 5,
     "v_add_f32 v8, v16, v16"},
    {"MatrixToStore", "gfx950", wide, 12, "ds_write_b32 v0, v31"},
    {"MatrixOverwritten", "gfx950", wide, 12, "v_mov_b32 v20, 0"},
    {"MatrixToA", "gfx950", wide, 12, "v_mfma_f32_32x32x16_f16 v[32:47], v[16:19], v[4:7], 0"},
    {"MatrixToOverlappingC", "gfx950", wide, 10, "v_mfma_f32_16x16x32_f16 v[32:35], v[0:3], v[4:7], v[16:19]"},
    {"CStillRead", "gfx942", "v_mfma_f32_32x32x8_f16 v[32:47], v[0:1], v[4:5], v[16:31]", 7, "v_mov_b32 v16, 0"},
    {"FloatMatrixToVector", "gfx942", "v_mfma_f32_32x32x2_f32 v[16:31], v0, v4, v[16:31]", 18,
     "v_add_f32 v8, v16, v16"},
    {"VectorToMatrix", "gfx950", "v_mov_b32 v0, 0", 2, wide},
    {"VectorToDpp", "gfx950", "v_mov_b32 v8, 0", 2, "v_mov_b32_dpp v9, v8 row_shr:1"},
    {"VectorToLaneSwap", "gfx950", "v_mov_b32 v8, 0", 2, "v_permlane32_swap_b32 v9, v8"},
    {"VectorToReadlane", "gfx950", "v_mov_b32 v8, 0", 1, "v_readfirstlane_b32 s8, v8"},
    {"TransToVector", "gfx942", "v_exp_f32 v8, v9", 1, "v_add_f32 v10, v8, v8"},
    {"PartToVector", "gfx942", "v_mov_b32_sdwa v8, v9 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0", 1,
     "v_add_u32 v10, v8, v8"},
    {"MaskToVector", "gfx950", "v_cmp_eq_u32 vcc, v8, v9", 2, "v_cndmask_b32 v10, v8, v9, vcc"},
    {"ScalarToBuffer", "gfx950", "v_readfirstlane_b32 s8, v1", 5, "buffer_load_dword v9, off, s[12:15], s8"},
    {"ScalarToLaneSelect", "gfx950", "v_readfirstlane_b32 s8, v1", 4, "v_readlane_b32 s9, v10, s8"},
    {"ExecToMatrix", "gfx950", "v_cmpx_eq_u32 vcc, v1, v1", 4, wide},
    {"ExecToDpp", "gfx950", "v_cmpx_eq_u32 vcc, v1, v1", 5, "v_mov_b32_dpp v9, v8 row_shr:1"},
    {"M0ToDma", "gfx950", "s_mov_b32 m0, 0", 1, "buffer_load_dword off, s[12:15], 0 lds"},
    {"WideStoreOverwritten", "gfx950", "global_store_dwordx4 v1, v[8:11], s[6:7]", 2, "v_mov_b32 v11, 0"},
    {"ModeToGetreg", "gfx950", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", 2,
     "s_getreg_b32 s8, hwreg(HW_REG_MODE)"},
};

Checked run(const Case& c, int states) {
  std::string body =
      std::string(prologue) +
      "s_mov_b32 s12, 0\ns_mov_b32 s13, 0\ns_mov_b32 s14, 0\ns_mov_b32 s15, 0x27000\ns_nop 7\ns_nop 7\ns_nop 7\n" +
      c.producer + "\n";
  for (; states > 0; states -= std::min(states, 8)) body += std::format("s_nop {}\n", std::min(states, 8) - 1);
  body += c.consumer + "\ns_nop 7\ns_nop 7\ns_nop 7\n";
  const Assembled kernel(KernelSource{.body = body, .target = c.target, .lds_bytes = 256});
  Buffer<uint32_t> memory(256, 7);
  return run_checked(kernel, {memory.address()}, {.checks = static_cast<uint32_t>(Check::hazards)});
}

TEST_P(Hazard, OneWaitStateTooFewIsReported) {
  const Checked checked = run(GetParam(), GetParam().needed - 1);
  ASSERT_THAT(checked.names(), ElementsAre("hazards"));
  EXPECT_THAT(checked.text(), HasSubstr(std::format("{} wait states after", GetParam().needed - 1)));
  EXPECT_THAT(checked.text(), HasSubstr(std::format("{} are needed", GetParam().needed)));
}
TEST_P(Hazard, EnoughOfThemAreSilent) {
  const Checked checked = run(GetParam(), GetParam().needed);
  EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
}

INSTANTIATE_TEST_SUITE_P(Each, Hazard, ::testing::ValuesIn(cases), [](const auto& info) { return info.param.name; });

TEST(Hazards, AccumulationNeedsNone) {
  const Case chain{"", "gfx950", wide, 0, wide};
  EXPECT_THAT(run(chain, 0).findings, IsEmpty());
}

}  // namespace
}  // namespace wavejit::simgpu::testing
