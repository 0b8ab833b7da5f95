// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two query tiles a workgroup (tiles=paired): within the bounds of float64 and with the bits of the generic pipeline
// and of single tiles, under every wave schedule; an odd number of tiles, several chunks of keys, sequences of their
// own lengths, everything that scores may pass through. And who gets it by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>
#include <utility>

#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wavejit_engine_options with_pipeline(const char* pipeline) {
  wavejit_engine_options options{};
  options.pipeline = pipeline;
  return options;
}

class PairedTiles : public ::testing::TestWithParam<std::tuple<Storage, int>> {
 protected:
  static Storage storage() { return std::get<0>(GetParam()); }
  static int head_dim() { return std::get<1>(GetParam()); }

  static AttentionCase make(int batch, int queries, int keys, std::uint64_t seed) {
    return make_case(storage(), batch, queries, keys, 2, 1, head_dim(), true, seed);
  }

  static void expect_right(const AttentionOutput& output) {
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
  }

  void check(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput generic = run_attention(generic_.get(), which);
    const AttentionOutput single = run_attention(single_.get(), which);
    expect_right(generic);
    expect_right(single);
    EXPECT_THAT(single.kernel_spec, Not(HasSubstr("tiles=paired")));
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), generic).wrong(), "");
    for (const Schedule& schedule : schedules) {
      SCOPED_TRACE(std::format("schedule {}, seed {}", static_cast<int>(schedule.order), schedule.seed));
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput paired = run_attention(paired_.get(), which);
      expect_right(paired);
      EXPECT_THAT(paired.kernel_spec, HasSubstr(" tiles=paired pipeline=dualwave "));
      for (const AttentionOutput* other : {&generic, &single}) {
        EXPECT_TRUE(paired.o == other->o) << "O differs from " << other->kernel_spec;
        EXPECT_TRUE(bits_of(paired.lse) == bits_of(other->lse)) << "LSE differs from " << other->kernel_spec;
      }
    }
  }

  Engine generic_{"gfx950", with_pipeline("generic")};
  Engine single_{"gfx950", with_pipeline("dualwave tiles=single")};
  Engine paired_{"gfx950", with_pipeline("dualwave tiles=paired")};
};

// One to five query tiles, of which the last is cut; keys from none to three chunks, fewer than rows and more, so that
// either tile of a pair may have no key, one tile or an odd or even number of them.
TEST_P(PairedTiles, HaveTheBitsOfSingleOnes) {
  int index = 0;
  for (const auto& [queries, keys] :
       {std::pair{300, 300}, {512, 511}, {513, 577}, {257, 0}, {700, 130}, {256, 200}, {600, 2120}, {1100, 1000}}) {
    if (!in_part(++index, 2)) continue;
    SCOPED_TRACE(std::format("q{} k{}", queries, keys));
    check(make(queries < 600 ? 2 : 1, queries, keys, 70 + static_cast<std::uint64_t>(index)));
    if (HasFailure()) return;
  }
}

TEST_P(PairedTiles, HaveThemWhereSequencesHaveLengthsOfTheirOwn) {
  AttentionCase which = make(1, 940, 900, 90);
  AttentionInputs& in = which.inputs;
  in.batch = 3;
  in.query_length = 600;
  in.key_length = 540;
  in.query_starts = {0, 600, 610, 940};
  in.key_starts = {0, 300, 840, 900};
  check(which);
}

TEST_P(PairedTiles, HaveThemWithModifiersAndPadding) {
  AttentionCase which = make(1, 530, 600, 91);
  which.inputs.softcap = 3;
  add_bias(which, 1, 2, 1, 92);
  add_alibi(which, 1);
  add_sink(which, 0);
  check(which);
  AttentionCase padded = make(2, 520, 400, 93);
  padded.inputs.key_lengths = {400, 333};
  padded.first_keys = {5, 72};
  check(padded);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Storage, int>>& info) {
  return std::format("{}_d{}", std::get<0>(info.param) == Storage::fp16 ? "fp16" : "bf16", std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, PairedTiles,
                         ::testing::Values(std::tuple{Storage::bf16, 128}, std::tuple{Storage::fp16, 64}), name_of);

}  // namespace
}  // namespace wavejit::tests
