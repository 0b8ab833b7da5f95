// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// O in f32: each element is what is rounded where O has the type of Q, K and V. So it is held against float64 with its
// own, narrower bound, and its rounding against the 16-bit kernel bit by bit: on every pipeline, with keys whole and
// split, heads packed, in pages, with a sink, behind strides with gaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

struct Way {
  const char* target;
  const char* pipeline;  // null: auto
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.target << ' ' << (way.pipeline == nullptr ? "auto" : way.pipeline);
}

wavejit_engine_options options_of(const Way& way) {
  wavejit_engine_options options{};
  options.pipeline = way.pipeline;
  return options;
}

AttentionCase in_fp32(AttentionCase which) {
  which.output_fp32 = true;
  return which;
}

std::vector<std::uint16_t> rounded(Storage storage, const AttentionOutput& output) {
  std::vector<std::uint16_t> bits;
  for (const float value : output_in_fp32(output)) bits.push_back(to_storage(storage, value));
  return bits;
}

class OutputFp32 : public ::testing::TestWithParam<Way> {
 protected:
  // Bounds, schedules, the name of the kernel; and the rounding of O beside what the 16-bit kernel leaves.
  void check(const AttentionCase& which) {
    check_under_all_schedules(engine_, in_fp32(which));
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput wide = run_attention(engine_.get(), in_fp32(which));
    const AttentionOutput narrow = run_attention(engine_.get(), which);
    ASSERT_EQ(wide.status, WAVEJIT_OK) << wide.detail;
    ASSERT_EQ(narrow.status, WAVEJIT_OK) << narrow.detail;
    EXPECT_TRUE(rounded(which.storage, wide) == narrow.o) << "O in f32 is not what the 16-bit kernel rounds";
    EXPECT_TRUE(wide.lse == narrow.lse) << "LSE differs";
    EXPECT_NE(rounded(which.storage, wide).size(), 0U);
    // It is no widened 16-bit result: some element has bits below.
    const std::vector<float> values = output_in_fp32(wide);
    EXPECT_TRUE(std::ranges::any_of(values, [&](float value) {
      return value != from_storage(which.storage, to_storage(which.storage, value));
    })) << "every element of O is a number of the 16-bit type";
  }

  Engine engine_{GetParam().target, options_of(GetParam())};
};

// Two query tiles of which the second is not full, causal, grouped heads, rows without keys.
TEST_P(OutputFp32, IsWhatIsRoundedElsewhere) {
  check(make_case(Storage::bf16, 1, 300, 270, 4, 2, 128, true, 11));
  AttentionCase padded = make_case(Storage::fp16, 2, 65, 130, 2, 2, 64, false, 12);
  padded.layout = Layout::padded;
  check(padded);
}

TEST_P(OutputFp32, SplitKeysLeaveItToTheCombineKernel) {
  AttentionCase which = make_case(Storage::bf16, 1, 3, 2100, 8, 2, 128, true, 13);
  which.inputs.sink = std::vector<float>(8, 0.5F);
  which.splits = 3;
  check(which);
  const AttentionOutput split = run_attention(engine_.get(), in_fp32(which));
  which.splits = 1;
  const AttentionOutput whole = run_attention(engine_.get(), in_fp32(which));
  EXPECT_TRUE(split.o == whole.o) << "the number of splits shows in O";
}

TEST_P(OutputFp32, OfKeysInPages) {
  AttentionCase which = make_case(Storage::fp16, 2, 2, 200, 4, 1, 64, false, 14);
  which.inputs.key_lengths = {200, 77};
  which.pages = Pages{.size = 64};
  check(which);
}

// Long queries and short ones in one call: both kernels that walk the keys, and the combine kernel, leave f32.
TEST_P(OutputFp32, OfLongAndShortQueriesInOneCall) {
  AttentionCase which = make_case(Storage::bf16, 3, 1, 1100, 4, 2, 64, true, 15);
  AttentionInputs& in = which.inputs;
  in.key_lengths = {1100, 1100, 70};
  in.query_starts = {0, 40, 41, 43};
  in.query_length = 40;
  in.q = make_case(Storage::bf16, 1, 43, 1, 4, 2, 64, false, 16).inputs.q;
  check(which);
}

INSTANTIATE_TEST_SUITE_P(All, OutputFp32,
                         ::testing::Values(Way{"gfx942", nullptr}, Way{"gfx942", "generic"}, Way{"gfx950", "dualwave"},
                                           Way{"gfx950", "generic"}),
                         [](const auto& info) {
                           return std::string(info.param.target) + "_" +
                                  (info.param.pipeline == nullptr ? "auto" : info.param.pipeline);
                         });

TEST(OutputFp32Refusals, AStoreThatSwapsHalvesIsRefusedByName) {
  const Engine engine("gfx950", nullptr, "permlane");
  const AttentionOutput refused =
      run_attention(engine.get(), in_fp32(make_case(Storage::bf16, 1, 4, 64, 1, 1, 64, false, 15)));
  EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
  EXPECT_NE(refused.detail.find("o=fp32 stores 16 bytes"), std::string::npos) << refused.detail;
}

}  // namespace
}  // namespace wavejit::tests
