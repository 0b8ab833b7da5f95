// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Split keys: partial results of several runs of chunks, merged. Against float64 for every number of splits and every
// kind of run (whole, cut, empty, hidden from some rows or from all), under wave schedules, with partial results in
// memory that held NaN between fences; the same bits where the documentation promises them (docs/split-keys.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <format>
#include <string>
#include <string_view>
#include <tuple>

#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/part.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

constexpr int chunk = attention_forward::chunk_keys;
constexpr std::array split_counts = {1, 2, 3, 4, 5, 7, 64};

struct Route {
  const char* target;
  const char* pipeline;
};

void PrintTo(const Route& route, std::ostream* out) { *out << route.target << ' ' << route.pipeline; }

wavejit_engine_options with_pipeline(const char* pipeline) {
  wavejit_engine_options options{};
  options.pipeline = pipeline;
  return options;
}

AttentionCase with_splits(AttentionCase which, int splits) {
  which.splits = splits;
  return which;
}

AttentionOutput run(const Engine& engine, const AttentionCase& which) {
  AttentionOutput output = run_attention(engine.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
  EXPECT_EQ(output.reports, "");
  EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
  return output;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](float x) { return std::bit_cast<std::uint32_t>(x); });
  return bits;
}

void expect_same(const AttentionOutput& output, const AttentionOutput& wanted) {
  EXPECT_TRUE(output.o == wanted.o) << "O differs";
  EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs";
}

class Split : public ::testing::TestWithParam<std::tuple<Route, Storage, int, bool>> {
 protected:
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }
  bool causal() const { return std::get<3>(GetParam()); }
  AttentionCase make(int batch, int queries, int keys, int heads, int kv_heads, std::uint64_t seed) const {
    return make_case(storage(), batch, queries, keys, heads, kv_heads, head_dim(), causal(), seed);
  }

  Engine engine_{std::get<0>(GetParam()).target, with_pipeline(std::get<0>(GetParam()).pipeline)};
};

class SplitNumbers : public Split {};

// Queries of one tile, of two, and none that fill one; rows before the first key of a causal diagonal.
TEST_P(SplitNumbers, MatchFloat64) {
  struct Case {
    int queries, keys, heads, kv_heads;
  };
  constexpr std::array cases = {Case{3, 1, 2, 1},      Case{1, 63, 4, 1},    Case{70, 64, 1, 1},  Case{65, 65, 2, 2},
                                Case{33, 1025, 4, 2},  Case{70, 2049, 1, 1}, Case{1, 4097, 8, 1}, Case{129, 2305, 1, 1},
                                Case{300, 1100, 1, 1}, Case{5, 0, 1, 1}};
  for (int index = 0; index < static_cast<int>(cases.size()); ++index) {
    if (!in_part(index, 3)) continue;
    const Case& one = cases[index];
    AttentionCase which = make(index % 3 == 0 ? 2 : 1, one.queries, one.keys, one.heads, one.kv_heads, 500 + index);
    which.layout = index % 2 == 0 ? Layout::bshd : Layout::padded;
    which.lse = index % 4 != 1;
    const AttentionAnswer exact = attention_reference(which.inputs);
    std::vector<AttentionOutput> outputs;
    for (const int splits : split_counts) {
      // Beyond the chunks there are no other runs (EmptyRunsDoNotShow); once shows that.
      if (splits > 2 && splits < 64 && splits > (one.keys + chunk - 1) / chunk) continue;
      SCOPED_TRACE(std::format("q{} k{} h{}/{} splits {}", one.queries, one.keys, one.heads, one.kv_heads, splits));
      const Schedule& schedule = schedules[static_cast<std::size_t>(index + splits) % schedules.size()];
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput output = run(engine_, with_splits(which, splits));
      if (HasFailure()) return;
      EXPECT_EQ(output.kernel_spec.contains(" split="), splits > 1 && one.keys > chunk) << output.kernel_spec;
      EXPECT_EQ(compare_rows(which, exact, output).wrong(), "");
      // Whoever walks a chunk.
      if (splits > 1) expect_same(output, outputs.front());
      outputs.push_back(output);
    }
  }
}

class SplitPromises : public Split {};

TEST_P(SplitPromises, DoesNotDependOnTheWaveSchedule) {
  for (const int splits : {3, 4}) {
    check_under_all_schedules(engine_, with_splits(make(1, 140, 1025, 2, 1, 601), splits));
    if (HasFailure()) return;
  }
}

// The engine's memory, twice, so that the second call finds what the first one left.
TEST_P(SplitPromises, WorksInTheEnginesOwnWorkspace) {
  AttentionCase which = with_splits(make(1, 70, 2100, 2, 1, 602), 3);
  const AttentionOutput wanted = run(engine_, which);
  which.engine_workspace = true;
  expect_same(run(engine_, which), wanted);
  AttentionCase larger = with_splits(make(2, 130, 1025, 4, 1, 603), 5);
  larger.engine_workspace = true;
  const AttentionAnswer exact = attention_reference(larger.inputs);
  EXPECT_EQ(compare_rows(larger, exact, run(engine_, larger)).wrong(), "");
  expect_same(run(engine_, which), wanted);
}

// A sequence alone and as one of three.
TEST_P(SplitPromises, BatchPositionDoesNotShow) {
  const AttentionCase one = make(1, 20, 2100, 2, 1, 604);
  for (const int splits : {2, 3}) {
    const AttentionOutput alone = run(engine_, with_splits(one, splits));
    for (int position = 0; position < 3; ++position) {
      AttentionCase mixed = make(3, 20, 2100, 2, 1, 605);
      std::ranges::copy(one.inputs.q, mixed.inputs.q.begin() + position * one.inputs.q.size());
      std::ranges::copy(one.inputs.k, mixed.inputs.k.begin() + position * one.inputs.k.size());
      std::ranges::copy(one.inputs.v, mixed.inputs.v.begin() + position * one.inputs.v.size());
      const AttentionOutput together = run(engine_, with_splits(mixed, splits));
      const auto slice = [&](const auto& all, const auto& part) {
        return std::vector(all.begin() + position * part.size(), all.begin() + (position + 1) * part.size());
      };
      EXPECT_EQ(slice(together.o, alone.o), alone.o) << "splits " << splits << " position " << position;
      EXPECT_EQ(bits_of(slice(together.lse, alone.lse)), bits_of(alone.lse)) << "position " << position;
    }
  }
}

// As many splits as chunks, or more: the same runs, and empty ones besides.
TEST_P(SplitPromises, EmptyRunsDoNotShow) {
  const AttentionCase which = make(1, 33, 3 * chunk - 5, 2, 1, 606);
  const AttentionOutput three = run(engine_, with_splits(which, 3));
  expect_same(run(engine_, with_splits(which, 4)), three);
  expect_same(run(engine_, with_splits(which, 64)), three);
}

// The combine kernel weighs 64 chunks at a time and merges sixteen a turn: here are three more than that.
TEST_P(SplitPromises, ManyChunksHaveTheBitsOfOneWalk) {
  const Route& route = std::get<0>(GetParam());
  if (route.pipeline != std::string_view("generic") || route.target != std::string_view("gfx950") || head_dim() != 64)
    GTEST_SKIP() << "one is enough";
  const AttentionCase which = make(1, 1, (67 * chunk) - 100, 1, 1, 609);
  const AttentionOutput walked = run(engine_, with_splits(which, 1));
  expect_same(run(engine_, with_splits(which, 67)), walked);
}

// A whole chunk of NaN, keys and values, behind the diagonal: what no row of a workgroup sees is not read.
TEST_P(SplitPromises, HiddenRunsAreNotRead) {
  AttentionCase which = make_case(storage(), 1, 2 * chunk, 3 * chunk, 1, 1, head_dim(), true, 607);
  const AttentionAnswer exact = attention_reference(which.inputs);
  const std::size_t row = static_cast<std::size_t>(head_dim());
  // Rows 0 … chunk − 1 see the keys up to 2 · chunk − 1.
  const auto poison = [&](std::vector<float>& values) {
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(2 * chunk * row), values.end(),
              std::numeric_limits<float>::quiet_NaN());
  };
  poison(which.inputs.k);
  poison(which.inputs.v);
  const AttentionOutput output = run(engine_, with_splits(which, 3));
  double error = 0;
  for (std::size_t i = 0; i < chunk * row; ++i) {
    const double got = from_storage(storage(), output.o[i]);
    ASSERT_TRUE(std::isfinite(got)) << "element " << i;
    error = std::max(error, std::fabs(got - exact.o[i]));
  }
  EXPECT_LT(error, storage() == Storage::fp16 ? 2e-3 : 2e-2);
  for (std::size_t i = chunk; i < 2 * chunk; ++i) EXPECT_TRUE(std::isnan(output.lse[i])) << "row " << i;
}

// Maxima far apart between runs: one of them decides, and none overflows.
TEST_P(SplitPromises, RunsWithMaximaFarApart) {
  AttentionCase which = make(1, 64, 4 * chunk, 1, 1, 608);
  const std::size_t row = static_cast<std::size_t>(head_dim());
  for (int run = 0; run < 4; ++run) {
    const float factor = std::array{1.0F, 12.0F, 0.0F, 6.0F}[static_cast<std::size_t>(run)];
    for (std::size_t i = run * chunk * row; i < (run + 1) * chunk * row; ++i) which.inputs.k[i] *= factor;
  }
  for (float& x : which.inputs.k) x = from_storage(storage(), to_storage(storage(), x));
  const AttentionAnswer exact = attention_reference(which.inputs);
  for (const int splits : {2, 4}) {
    EXPECT_EQ(compare_rows(which, exact, run(engine_, with_splits(which, splits))).wrong(), "");
  }
}

std::string name_of(const ::testing::TestParamInfo<Split::ParamType>& info) {
  const auto [route, storage, head_dim, causal] = info.param;
  return std::format("{}_{}_{}_d{}_{}", route.target, route.pipeline, storage == Storage::fp16 ? "fp16" : "bf16",
                     head_dim, causal ? "causal" : "full");
}

constexpr Route routes[] = {{"gfx942", "generic"}, {"gfx950", "generic"}, {"gfx950", "dualwave"}};

INSTANTIATE_TEST_SUITE_P(All, SplitNumbers,
                         ::testing::ValuesIn(half_of_combinations<Route, Storage, int, bool>(
                             {std::begin(routes), std::end(routes)}, {Storage::fp16, Storage::bf16}, {64, 128},
                             {false, true})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Fp16Causal, SplitPromises,
                         ::testing::Combine(::testing::ValuesIn(routes), ::testing::Values(Storage::fp16),
                                            ::testing::Values(64), ::testing::Values(true)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Bf16Full, SplitPromises,
                         ::testing::Combine(::testing::ValuesIn(routes), ::testing::Values(Storage::bf16),
                                            ::testing::Values(128), ::testing::Values(false)),
                         name_of);

// Whole or split, on either pipeline.
class SplitPipelines : public ::testing::TestWithParam<std::tuple<Storage, int, bool>> {};

TEST_P(SplitPipelines, GiveTheSameBits) {
  const auto [storage, head_dim, causal] = GetParam();
  const Engine generic("gfx950", with_pipeline("generic"));
  const Engine dualwave("gfx950", with_pipeline("dualwave"));
  int index = 0;
  for (const auto& [queries, keys] : {std::pair{1, 2049}, {257, 1100}, {64, 3100}}) {
    for (const int splits : {2, 5}) {
      SCOPED_TRACE(std::format("q{} k{} splits {}", queries, keys, splits));
      const AttentionCase which =
          with_splits(make_case(storage, 1, queries, keys, 2, 1, head_dim, causal, 700 + index, 3.0), splits);
      set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
      const AttentionOutput wanted = run(generic, with_splits(which, 1));
      expect_same(run(generic, which), wanted);
      const Schedule& schedule = schedules[static_cast<std::size_t>(++index) % schedules.size()];
      set_schedule(schedule.order, schedule.seed);
      expect_same(run(dualwave, which), wanted);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SplitPipelines,
                         ::testing::ValuesIn(half_of_combinations<Storage, int, bool>({Storage::fp16, Storage::bf16},
                                                                                      {64, 128}, {false, true})));

}  // namespace
}  // namespace wavejit::tests
