// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of packed heads that the last workgroup to arrive merges, in the launch that leaves them: the same bits as a
// second launch's, whatever is walked, whoever comes last, and whatever was launched before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <format>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OneLaunch : public ::testing::TestWithParam<const char*> {
 protected:
  AttentionOutput run(const Engine& engine, AttentionCase which, std::uint32_t launches) const {
    which.flags |= launches;
    AttentionOutput output = run_attention(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
    return output;
  }
  AttentionOutput run(const AttentionCase& which, std::uint32_t launches) const {
    return run(engine_, which, launches);
  }

  static void expect_same(const AttentionOutput& one, const AttentionOutput& two) {
    EXPECT_TRUE(one.o == two.o) << "O differs";
    EXPECT_TRUE(bits_of(one.lse) == bits_of(two.lse)) << "LSE differs";
  }

  void expect_bits_of_two(const Engine& engine, const AttentionCase& which) const {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput two = run(engine, which, WAVEJIT_TWO_LAUNCHES);
    EXPECT_THAT(two.kernel_spec, Not(HasSubstr(" merged")));
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), two).wrong(), "");
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput one = run(engine, which, WAVEJIT_ONE_LAUNCH);
      EXPECT_THAT(one.kernel_spec, HasSubstr(" merged"));
      expect_same(one, two);
    }
  }

  Engine engine_{GetParam()};
};

struct Shape {
  int batch, queries, keys, heads, kv_heads, dims, dims_v;
  bool causal;
  int splits;
};

std::string text_of(const Shape& shape) {
  return std::format("b{} q{} k{} h{}/{} d{}/{} splits {}", shape.batch, shape.queries, shape.keys, shape.heads,
                     shape.kv_heads, shape.dims, shape.dims_v, shape.splits);
}

// Rows that fill a step and that do not, one step and several, tiles of one wave and of more, the last of which has no
// row; a row that sees no chunk but the first.
constexpr Shape shapes[] = {{1, 1, 3000, 8, 1, 128, 128, false, 3}, {2, 1, 2100, 16, 2, 128, 128, false, 3},
                            {1, 1, 1025, 12, 1, 64, 64, false, 2},  {1, 4, 2200, 8, 2, 128, 128, true, 3},
                            {2, 5, 1100, 8, 1, 64, 64, true, 2},    {1, 9, 1300, 16, 2, 128, 128, true, 2},
                            {1, 2, 5200, 8, 1, 128, 128, false, 4}, {1, 1, 1500, 28, 4, 192, 128, false, 2},
                            {1, 31, 1100, 4, 1, 64, 64, true, 2}};

TEST_P(OneLaunch, HasTheBitsOfTwo) {
  for (int index = 0; index < static_cast<int>(std::size(shapes)); ++index) {
    if (!in_part(index, 2)) continue;
    const Shape& shape = shapes[index];
    SCOPED_TRACE(text_of(shape));
    AttentionCase which =
        make_case(index % 2 == 0 ? Storage::bf16 : Storage::fp16, shape.batch, shape.queries, shape.keys, shape.heads,
                  shape.kv_heads, shape.dims, shape.causal, 700 + index, 1.0, shape.dims_v);
    which.splits = shape.splits;
    which.lse = index % 3 != 1;
    which.layout = index % 2 == 0 ? Layout::bshd : Layout::padded;
    expect_bits_of_two(engine_, which);
    if (HasFailure()) return;
  }
}

// Lengths of their own, of which one is none and others end in any chunk: runs that leave no part.
TEST_P(OneLaunch, CountsOnlyRunsThatLeaveParts) {
  AttentionCase which = make_case(Storage::bf16, 5, 2, 2100, 4, 1, 64, true, 720);
  which.inputs.key_lengths = {2100, 0, 1024, 1, 1025};
  which.splits = 3;
  expect_bits_of_two(engine_, which);
  for (const int size : {1, 64}) {
    SCOPED_TRACE(size);
    which.pages = Pages{.size = size};
    expect_bits_of_two(engine_, which);
  }
  which.first_keys = {0, 30, 1100, 5, 77};
  which.pages = Pages{.size = 16};
  expect_bits_of_two(engine_, which);
}

TEST_P(OneLaunch, TakesPackedQueries) {
  AttentionCase which = make_case(Storage::fp16, 1, 8, 2200, 8, 1, 64, true, 730);
  which.inputs.batch = 3;
  which.inputs.query_length = 5;
  which.inputs.query_starts = {0, 5, 6, 8};
  AttentionInputs& in = which.inputs;
  const AttentionCase keys = make_case(Storage::fp16, 3, 8, 2200, 8, 1, 64, true, 731);
  in.k = keys.inputs.k;
  in.v = keys.inputs.v;
  in.key_lengths = {2200, 1100, 40};
  which.pages = Pages{.size = 16};
  which.splits = 3;
  expect_bits_of_two(engine_, which);
}

TEST_P(OneLaunch, TakesWindowsSinksAndModifiers) {
  AttentionCase which = make_case(Storage::bf16, 1, 4, 4000, 8, 1, 128, false, 740);
  which.splits = 4;
  which.inputs.window = which.inputs.causal = true;
  which.inputs.window_right = 0;
  for (const int left : {100, 1023, 1500}) {
    SCOPED_TRACE(left);
    which.inputs.window_left = left;
    expect_bits_of_two(engine_, which);
  }
  which.inputs.window = false;
  add_sink(which, 1.0);
  expect_bits_of_two(engine_, which);
  add_alibi(which, 1);
  add_bias(which, 1, 8, 1.0, 741);
  which.inputs.softcap = 5;
  which.splits = 2;
  expect_bits_of_two(engine_, which);
}

// Tiles of two waves merge them in a second launch.
TEST_P(OneLaunch, TakesLocalChunksInPages) {
  for (const int queries : {1, 4}) {
    SCOPED_TRACE(queries);
    AttentionCase which = make_case(Storage::bf16, 2, queries, 2200, 16, 1, 128, true, 744 + queries);
    which.inputs.local_chunk = 1500;
    which.inputs.key_lengths = {2200, 1100};
    which.pages = Pages{.size = 16};
    which.splits = 3;
    if (queries == 1) {
      expect_bits_of_two(engine_, which);
      continue;
    }
    const AttentionOutput one = run(which, WAVEJIT_ONE_LAUNCH);
    EXPECT_THAT(one.kernel_spec, HasSubstr(" tile=64x64 "));
    EXPECT_THAT(one.kernel_spec, Not(HasSubstr(" merged")));
    expect_same(one, run(which, WAVEJIT_TWO_LAUNCHES));
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), one).wrong(), "");
  }
}

// Counters are zeros behind each launch, whatever number of runs came before on the stream.
TEST_P(OneLaunch, LeavesCountersForAnyOther) {
  std::vector<std::pair<AttentionCase, AttentionOutput>> calls;
  for (const int splits : {2, 3, 5}) {
    AttentionCase which = make_case(Storage::bf16, splits, 1, 5000, 8, 1, 64, false, 750 + splits);
    which.splits = splits;
    which.engine_workspace = true;
    calls.emplace_back(which, run(which, WAVEJIT_TWO_LAUNCHES));
  }
  for (int turn = 0; turn < 2; ++turn)
    for (const auto& [which, two] : calls) expect_same(run(which, WAVEJIT_ONE_LAUNCH), two);
}

// Rounds follow each other over the same workspace and the same counters.
TEST_P(OneLaunch, GoesInRounds) {
  AttentionCase which = make_case(Storage::bf16, 3, 1, 2100, 8, 2, 64, false, 760);
  which.own_workspace = true;
  which.inputs.key_lengths = {2100, 40, 1025};
  const AttentionOutput two = run(which, WAVEJIT_TWO_LAUNCHES);
  which.withheld_workspace = std::size_t{2} * 8 * 3 * (64 + 4) * 4;
  const AttentionOutput rounds = run(which, WAVEJIT_ONE_LAUNCH);
  EXPECT_THAT(rounds.kernel_spec, HasSubstr(" merged"));
  expect_same(rounds, two);
}

// What has no such kernel merges in a launch of its own, as it always did.
TEST_P(OneLaunch, IsLeftOutWhereThereIsNoKernel) {
  AttentionCase one_head = make_case(Storage::bf16, 1, 1, 2100, 2, 2, 64, false, 770);
  AttentionCase wide = make_case(Storage::bf16, 1, 1, 2100, 8, 2, 64, false, 771);
  wide.output_fp32 = true;
  for (AttentionCase* which : {&one_head, &wide}) {
    which->splits = 3;
    const AttentionOutput one = run(*which, WAVEJIT_ONE_LAUNCH);
    EXPECT_THAT(one.kernel_spec, Not(HasSubstr(" merged")));
    expect_same(one, run(*which, WAVEJIT_TWO_LAUNCHES));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, OneLaunch, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// Waves that share the rows of a tile merge them in turn.
class OneLaunchOfSharedWaves : public OneLaunch {
 protected:
  Engine engine_of(const char* pipeline) const {
    wavejit_engine_options options{};
    options.pipeline = pipeline;
    return Engine{GetParam(), options};
  }
};

TEST_P(OneLaunchOfSharedWaves, HasTheBitsOfTwo) {
  const Engine shared = engine_of("generic chunk_waves=4");
  for (const int queries : {1, 2, 4}) {
    SCOPED_TRACE(queries);
    AttentionCase which = make_case(Storage::bf16, 2, queries, 2200, 8, 1, 128, true, 780 + queries);
    which.splits = 3;
    expect_bits_of_two(shared, which);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, OneLaunchOfSharedWaves, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// An aborted launch leaves its counters anywhere. Nobody counts there again: the process has lost its device.
TEST(OneLaunchAborted, IsTheLastOfItsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto aborted = [] {
    setenv("WAVEJIT_SIM_INSTRUCTION_LIMIT", "1000", 1);
    const Engine engine{"gfx950"};
    AttentionCase which = make_case(Storage::bf16, 2, 1, 2100, 8, 1, 128, false, 790);
    which.splits = 3;
    which.flags = WAVEJIT_ONE_LAUNCH;
    const AttentionOutput first = run_attention(engine.get(), which);
    std::string second;
    try {
      second = run_attention(engine.get(), which).detail;
    } catch (const std::runtime_error& error) {
      second = error.what();
    }
    std::exit(first.status == WAVEJIT_DEVICE_ERROR && second.contains("hipErrorLaunchFailure") ? 0 : 1);
  };
  EXPECT_EXIT(aborted(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wavejit::tests
