// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Split keys: what rows of value_rows.txt do not say. The engine's own workspace, sequences at other places of a batch,
// runs that no row sees (docs/split-keys.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <format>
#include <string>
#include <tuple>

#include "support/attention_run.h"
#include "support/bits_of.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

constexpr int chunk = attention_forward::chunk_keys;

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

void expect_same(const AttentionOutput& output, const AttentionOutput& wanted) {
  EXPECT_TRUE(output.o == wanted.o) << "O differs";
  EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs";
}

class SplitPromises : public ::testing::TestWithParam<std::tuple<Route, Storage, int, bool>> {
 protected:
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }
  bool causal() const { return std::get<3>(GetParam()); }
  AttentionCase make(int batch, int queries, int keys, int heads, int kv_heads, std::uint64_t seed) const {
    return make_case(storage(), batch, queries, keys, heads, kv_heads, head_dim(), causal(), seed);
  }

  Engine engine_{std::get<0>(GetParam()).target, with_pipeline(std::get<0>(GetParam()).pipeline)};
};

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

std::string name_of(const ::testing::TestParamInfo<SplitPromises::ParamType>& info) {
  const auto [route, storage, head_dim, causal] = info.param;
  return std::format("{}_{}_{}_d{}_{}", route.target, route.pipeline, storage == Storage::fp16 ? "fp16" : "bf16",
                     head_dim, causal ? "causal" : "full");
}

constexpr Route routes[] = {{"gfx942", "generic"}, {"gfx950", "generic"}, {"gfx950", "dualwave"}};

INSTANTIATE_TEST_SUITE_P(Fp16Causal, SplitPromises,
                         ::testing::Combine(::testing::ValuesIn(routes), ::testing::Values(Storage::fp16),
                                            ::testing::Values(64), ::testing::Values(true)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Bf16Full, SplitPromises,
                         ::testing::Combine(::testing::ValuesIn(routes), ::testing::Values(Storage::bf16),
                                            ::testing::Values(128), ::testing::Values(false)),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
