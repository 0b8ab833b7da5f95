// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Windows and prefixes show in no bit: beside calls without them, and of a row alone or among others. Against float64
// they are rows of value_rows.txt.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int>;

class AttentionWindow : public ::testing::TestWithParam<Combination> {
 protected:
  AttentionCase make(int queries, int keys, std::uint64_t seed) const {
    return make_case(std::get<1>(GetParam()), 1, queries, keys, 2, 1, head_dim(), false, seed);
  }
  int head_dim() const { return std::get<2>(GetParam()); }
  Pipelines pipelines_{std::get<0>(GetParam())};
};

// Tiles that others in the workgroup see and those that nobody sees: nothing of either shows.
TEST_P(AttentionWindow, RowAloneOrAmongOthers) {
  AttentionCase which = make(140, 400, 132);
  which.inputs.window = true;
  which.inputs.window_left = 75;
  which.inputs.window_right = 10;
  which.inputs.prefix = 180;
  const AttentionOutput all = pipelines_.run(which);
  const std::size_t row_size = std::size_t(2) * head_dim();
  for (const int row : {0, 63, 101, 139}) {
    AttentionCase alone = which;
    alone.inputs.query_length = 1;
    alone.inputs.q.assign(which.inputs.q.begin() + row * row_size, which.inputs.q.begin() + (row + 1) * row_size);
    alone.inputs.prefix = 180 + row;
    const AttentionOutput one = run_attention(pipelines_.generic().get(), alone);
    EXPECT_TRUE(std::ranges::equal(one.o, std::span(all.o).subspan(row * row_size, row_size))) << "row " << row;
    for (int h = 0; h < 2; ++h) EXPECT_EQ(one.lse[h], all.lse[std::size_t(h) * 140 + row]);
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim] = info.param;
  return std::format("{}_{}_d{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionWindow,
                         ::testing::Values(Combination{"gfx942", Storage::fp16, 64},
                                           Combination{"gfx942", Storage::bf16, 128},
                                           Combination{"gfx950", Storage::bf16, 64},
                                           Combination{"gfx950", Storage::fp16, 128}),
                         name_of);

// Compiled, not run: a decode call of gpt-oss without LSE, whose window took the last scalar registers on gfx942.
class WindowOverPages : public ::testing::TestWithParam<const char*> {};
TEST_P(WindowOverPages, LeavesDecodeItsRegisters) {
  const Engine engine(GetParam());
  for (const char* words : {"bf16 b1 q1 k4000 h64/8 d64 causal window=127,0 sink layout=paged:16",
                            "fp16 b1 q6 k4000 h64/8 d64 causal window=127,0 layout=paged:64",
                            "bf16 b1 q1 k4000 h64/8 d64 causal window=127,0 sink lse layout=paged:64",
                            "fp16 b1 q1 k4000 h64/8 d64 causal chunked=100 layout=paged:64",
                            "bf16 b1 q5 k4000 h32/8 d128 causal window=127,0 sink layout=paged:80"}) {
    SCOPED_TRACE(words);
    const std::string line = std::string("attention_forward ") + words;
    const char* lines[] = {line.c_str()};
    EXPECT_EQ(wavejit_prepare(engine.get(), lines, 1, 1, nullptr, nullptr, nullptr), WAVEJIT_OK)
        << wavejit_last_detail();
  }
}
INSTANTIATE_TEST_SUITE_P(All, WindowOverPages, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
