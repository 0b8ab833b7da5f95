// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bool masks of few rows, whose heads are packed and whose keys are split: NaN in hidden tiles, lengths that lie, slopes
// of 0. Against float64 and beside walks they are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/bool_masks.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BoolMasksOfFewRows : public ::testing::TestWithParam<std::string> {
 protected:
  // The same mask, of each head its own.
  static AttentionCase by_heads(AttentionCase which) {
    AttentionInputs& in = which.inputs;
    const std::vector<std::uint8_t> one = in.shown;
    const std::size_t of_batch = one.size() / static_cast<std::size_t>(in.shown_batches);
    in.shown.clear();
    for (int b = 0; b < in.shown_batches; ++b)
      for (int h = 0; h < in.query_heads; ++h)
        in.shown.insert(in.shown.end(), one.begin() + static_cast<std::ptrdiff_t>(b * of_batch),
                        one.begin() + static_cast<std::ptrdiff_t>((b + 1) * of_batch));
    in.shown_heads = in.query_heads;
    return which;
  }

  AttentionOutput run(const AttentionCase& which) { return run(engine_, which); }
  static AttentionOutput run(const Engine& engine, const AttentionCase& which) {
    AttentionOutput output = run_attention(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  // Under every schedule, by waves that share chunks where there are few workgroups and by waves that do not, beside
  // walks.
  AttentionOutput expect_bits_of_walks(const AttentionCase& which) {
    const AttentionOutput walked = run(by_heads(which));
    EXPECT_THAT(walked.kernel_spec, HasSubstr(" block_lists bool_mask "));
    AttentionOutput output;
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      output = run(which);
      EXPECT_THAT(output.kernel_spec, Not(HasSubstr("block_lists")));
      EXPECT_THAT(output.kernel_spec, HasSubstr(" bool_mask "));
      expect_same_bits(output, walked);
      const AttentionOutput alone = run(unshared_, which);
      EXPECT_THAT(alone.kernel_spec, Not(HasSubstr("chunk_waves=")));
      expect_same_bits(alone, walked);
    }
    return output;
  }

  AttentionOutput check(const AttentionCase& which) {
    AttentionOutput output = expect_bits_of_walks(which);
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    return output;
  }

  static wavejit_engine_options generic() {
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.pipeline = "generic";
    return options;
  }

  Engine engine_{GetParam()};
  Engine unshared_{GetParam(), generic()};  // who pins a kernel has waves with rows of their own
};

// Slopes of 0 add nothing: so masks of PyTorch and JAX have the bits of a bias.
TEST_P(BoolMasksOfFewRows, HaveTheBitsOfABiasThatHides) {
  AttentionCase which = make_case(Storage::bf16, 1, 7, 2100, 4, 1, 128, false, 920);
  set_mask(which, 1, 1, random_blocks(which, 921));
  which.inputs.alibi.assign(4, 0.0F);
  const AttentionOutput masked = run(which);
  EXPECT_THAT(masked.kernel_spec, HasSubstr(" bool_mask "));
  AttentionInputs& in = which.inputs;
  in.bias_heads = 1;
  for (const std::uint8_t byte : in.shown) in.bias.push_back(byte != 0 ? 0 : -std::numeric_limits<float>::infinity());
  in.shown.clear();
  expect_same_bits(masked, run(which));
}

// What stands in tiles that nobody sees reaches nobody; in others it reaches whom it reaches by walks. Of 8 rows waves
// share chunks.
TEST_P(BoolMasksOfFewRows, HiddenTilesMayHoldNan) {
  for (const int rows : {9, 8}) {
    SCOPED_TRACE(rows);
    AttentionCase which = make_case(Storage::bf16, 1, rows, 2200, 8, 2, 128, false, 950);
    set_mask(which, 1, 1, [](int, int, int row, int key) { return key / 64 % 3 != 1 && (key + row) % 5 != 0; });
    const AttentionOutput wanted = run(which);
    AttentionInputs& in = which.inputs;
    const std::size_t row = std::size_t(in.kv_heads) * 128;
    for (std::size_t key = 0; key < 2200; ++key)
      for (std::size_t at = key * row; key / 64 % 3 == 1 && at < (key + 1) * row; ++at)
        in.k[at] = in.v[at] = std::numeric_limits<float>::quiet_NaN();
    expect_same_bits(expect_bits_of_walks(which), wanted);
    // Key 0 of a mixed tile, which some rows do not see.
    in.v[5] = std::numeric_limits<float>::quiet_NaN();
    const AttentionOutput reached = expect_bits_of_walks(which);
    EXPECT_FALSE(reached.o == wanted.o);
  }
}

TEST_P(BoolMasksOfFewRows, LengthsMayLie) {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  AttentionCase which = make_case(Storage::bf16, 2, 4, 1300, 4, 2, 64, true, 960);
  set_mask(which, 2, 1, random_blocks(which, 961));
  which.inputs.key_lengths = {1300, 1300};
  which.splits = 2;
  // Diagonals stand where lengths put them: here all rows see all keys that the mask shows.
  AttentionCase without_diagonal = which;
  without_diagonal.inputs.causal = false;
  const AttentionOutput whole = check(without_diagonal);
  which.told_key_lengths = {{most, 1304}};
  expect_same_bits(run(which), whole);
  which.told_key_lengths = {{-300, std::numeric_limits<std::int32_t>::min()}};
  which.inputs.key_lengths = {0, 0};
  expect_bits_of_walks(which);
}

INSTANTIATE_TEST_SUITE_P(All, BoolMasksOfFewRows, ::testing::Values("gfx942", "gfx950"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
