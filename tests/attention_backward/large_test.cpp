// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes that broke others' gradients: 16,384 rows of grouped heads, tensors beyond 2³¹ elements, slices that end just
// below 4 GiB. And how much noise bf16 adds to a published shape. ./dev soak runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "attention_backward/backward_run.h"
#include "attention_backward/rows_apart.h"

namespace wavejit::tests {
namespace {

using attention::program::Placement;
using attention::program::ScoreRules;
using attention_backward::program::Gradient;
using attention_backward::program::Gradients;
using attention_backward::program::Operands;

class LargeGradients : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { run_all(); }
  // Only workgroup `index` of each launch, as the simulated GPU counts them.
  static void run_only(std::uint64_t index) { choose(index, 1); }
  static void run_all() { choose(0, 0); }

  Engine engine_{GetParam()};

 private:
  static void choose(std::uint64_t first, std::uint64_t count) {
    wavejit_simgpu_settings settings{};
    settings.size = sizeof settings;
    wavejit_simgpu_get_settings(&settings);
    settings.checks = 0;
    settings.workgroup_first = first;
    settings.workgroup_step = 1;
    settings.workgroup_count = count;
    ASSERT_EQ(wavejit_simgpu_set_settings(&settings), 0);
  }
};

// Two sequences of 16,384 rows and keys, of which a row sees 100. First side by side, then with rows as far apart as a
// call may have them, so that a sequence's slice ends below 4 GiB and the second one begins behind 2³¹ elements: the
// same bits.
TEST_P(LargeGradients, OfSlicesThatEndBelowFourGibibytes) {
  run_all();
  const Arrays arrays = backward_arrays("bf16 b2 q16384 k16384 h2/1 d64 causal window=99,0");
  const BackwardOutput together = run_backward(engine_.get(), arrays);
  ASSERT_EQ(together.status, WAVEJIT_OK) << together.detail;
  EXPECT_EQ(wrong_gradients(arrays, together), "");

  // Elements of bf16. A slice counts with 256 rows that a tile may reach over its end: 8 elements more are too many.
  constexpr std::int64_t row_stride = 129056;
  constexpr auto span = [](std::int64_t stride) { return ((16384 + 256 - 1) * stride + 64) * 2; };
  static_assert(span(row_stride) < std::int64_t{1} << 32U);
  static_assert(span(row_stride + 8) > std::int64_t{1} << 32U);
  constexpr std::int64_t batch_stride = (std::int64_t{1} << 31U) + 8;
  const Placement queries = attention::program::queries_of(arrays.experiment);
  const Placement keys = attention::program::keys_of(arrays.experiment);
  const auto sparse = [&](const Placement& of) {
    return std::make_unique<RowsApart>(engine_.get(), of, 2, row_stride, batch_stride);
  };
  const auto q = sparse(queries);
  const auto k = sparse(keys);
  const auto v = sparse(keys);
  const auto o = sparse(queries);
  const auto d_o = sparse(queries);
  const auto dq = sparse(queries);
  const auto dk = sparse(keys);
  const auto dv = sparse(keys);
  q->write(arrays.q);
  k->write(arrays.k);
  v->write(arrays.v);
  o->write(arrays.o);
  d_o->write(arrays.d_o);
  const BackwardOutput apart = run_backward(engine_.get(), arrays, [&](wavejit_attention_backward_arguments& call) {
    q->describe(call.q);
    k->describe(call.k);
    v->describe(call.v);
    o->describe(call.o);
    d_o->describe(call.d_o);
    dq->describe(call.dq);
    dk->describe(call.dk);
    dv->describe(call.dv);
  });
  ASSERT_EQ(apart.status, WAVEJIT_OK) << apart.detail;
  EXPECT_TRUE(dq->read() == together.dq);
  EXPECT_TRUE(dk->read() == together.dk);
  EXPECT_TRUE(dv->read() == together.dv);

  const BackwardOutput beyond = run_backward(engine_.get(), arrays, [&](wavejit_attention_backward_arguments& call) {
    q->describe(call.q);
    call.q.strides[1] = row_stride + 8;
  });
  EXPECT_EQ(beyond.status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_TRUE(beyond.detail.contains("q: bytes that one head of one batch spans")) << beyond.detail;
}

// Rows or keys `first` … of a head as the reference takes them.
std::vector<double> rows_of(const Arrays& arrays, const std::vector<std::uint16_t>& values, const Placement& of,
                            std::int64_t first, std::int64_t count, std::int64_t head) {
  std::vector<double> rows;
  for (std::int64_t row = first; row < first + count; ++row)
    for (std::int64_t dim = 0; dim < of.head_dim; ++dim)
      rows.push_back(static_cast<double>(
          tools::decode(arrays.experiment.type, values[static_cast<std::size_t>(of.offset(row, head) + dim)])));
  return rows;
}

// "" or the first element of rows of a head that roundings do not explain.
std::string wrong_rows(const Arrays& arrays, const Gradient& exact, const std::vector<std::uint32_t>& bits,
                       const Placement& of, std::int64_t first, std::int64_t count, std::int64_t head) {
  const std::vector<double> bounds =
      attention_backward::program::bounds_of(arrays, exact, 0, static_cast<std::size_t>(count * of.head_dim));
  for (std::int64_t i = 0; i < count * of.head_dim; ++i) {
    const auto at = static_cast<std::size_t>(of.offset(first + (i / of.head_dim), head) + (i % of.head_dim));
    const double got = gradient_of(arrays, bits[at]);
    const double wanted = exact.values[static_cast<std::size_t>(i)];
    if (!(std::fabs(got - wanted) <= bounds[static_cast<std::size_t>(i)]))
      return std::format("row {}, dim {} is {} instead of {} ± {}", first + (i / of.head_dim), i % of.head_dim, got,
                         wanted, bounds[static_cast<std::size_t>(i)]);
  }
  return {};
}

// A published shape: 64 query heads, 8 kv heads, 16,384 rows and keys, causal. One workgroup of each kernel runs, the
// last tile of keys of the last kv head among them; of its rows delta stands in the workspace as the dQ kernel leaves
// it.
TEST_P(LargeGradients, Of16384RowsOfGroupedHeadsByChosenWorkgroups) {
  // All exact gradients would take hours: those that are compared are computed here.
  const auto made =
      attention_backward::program::make_arrays("attention_backward bf16 b1 q16384 k16384 h64/8 d128 causal", false);
  ASSERT_TRUE(made);
  const Arrays& arrays = *made;
  const attention::program::Experiment& of = arrays.experiment;
  const Placement queries = attention::program::queries_of(of);
  const Placement keys = attention::program::keys_of(of);
  const std::int64_t tile = std::string(GetParam()) == "gfx950" ? 256 : 128;  // rows, or keys, of a workgroup
  const std::int64_t tiles = of.key_length / tile;
  const std::int64_t last = (of.kv_heads * tiles) - 1;
  const std::int64_t head = last % of.query_heads;
  const std::int64_t row_tile = tiles - 1 - (last / of.query_heads);  // the heaviest come first
  const std::int64_t first_key = of.key_length - tile;

  const auto operands = [&](std::int64_t first_row, std::int64_t rows, std::int64_t key, std::int64_t count,
                            std::vector<std::int64_t> heads) {
    Operands part;
    part.rows = rows;
    part.keys = count;
    part.dims_qk = part.dims_v = of.head_dim_qk;
    const std::int64_t kv_head = heads.front() / of.group();
    part.k = rows_of(arrays, arrays.k, keys, key, count, kv_head);
    part.v = rows_of(arrays, arrays.v, keys, key, count, kv_head);
    for (const std::int64_t each : heads) {
      ScoreRules rules;
      rules.scale = static_cast<double>(of.scale);
      rules.diagonal = rules.position = first_row - key;
      part.rules.push_back(rules);
      const auto append = [&](std::vector<double>& to, const std::vector<std::uint16_t>& from) {
        const auto values = rows_of(arrays, from, queries, first_row, rows, each);
        to.insert(to.end(), values.begin(), values.end());
      };
      append(part.q, arrays.q);
      append(part.d_o, arrays.d_o);
      append(part.given.o, arrays.o);
      for (std::int64_t row = first_row; row < first_row + rows; ++row)
        part.given.lse.push_back(
            static_cast<double>(arrays.lse[attention_backward::program::number_at(queries, row, each)]));
    }
    return part;
  };

  std::vector<std::int64_t> group;
  for (std::int64_t i = 0; i < of.group(); ++i) group.push_back(((of.kv_heads - 1) * of.group()) + i);
  const Operands of_keys = operands(first_key, tile, first_key, tile, group);
  run_only(static_cast<std::uint64_t>(last));
  const BackwardOutput output = run_backward(engine_.get(), arrays, [&](wavejit_attention_backward_arguments& call) {
    std::vector<float> delta;
    for (std::int64_t i = 0; i < of.group() * tile; ++i) {
      double sum = 0;
      for (std::int64_t dim = 0; dim < of.head_dim_v; ++dim) {
        const auto at = static_cast<std::size_t>((i * of.head_dim_v) + dim);
        sum += of_keys.d_o[at] * of_keys.given.o[at];
      }
      delta.push_back(static_cast<float>(sum));
    }
    // [head][row of all]
    for (std::size_t i = 0; i < group.size(); ++i)
      require(wavejit_device_copy_in(
          engine_.get(), static_cast<float*>(call.split.workspace) + (group[i] * of.query_length) + first_key,
          delta.data() + (static_cast<std::int64_t>(i) * tile), static_cast<std::size_t>(tile) * sizeof(float)));
  });
  ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;

  const Gradients of_last_keys = attention_backward::program::backward(of_keys);
  EXPECT_EQ(wrong_rows(arrays, of_last_keys.dk, output.dk, keys, first_key, tile, of.kv_heads - 1), "") << "dk";
  EXPECT_EQ(wrong_rows(arrays, of_last_keys.dv, output.dv, keys, first_key, tile, of.kv_heads - 1), "") << "dv";
  const std::int64_t first_row = row_tile * tile;
  const Gradients of_rows =
      attention_backward::program::backward(operands(first_row, tile, 0, first_row + tile, {head}));
  EXPECT_EQ(wrong_rows(arrays, of_rows.dq, output.dq, queries, first_row, tile, head), "") << "dq";
}

// The shape that issues and papers give figures for, and wide heads at it.
TEST_P(LargeGradients, SignalToNoise) {
  run_all();
  for (const char* dims : {"d128", "d192/128", "d256"}) {
    const Arrays arrays = backward_arrays(std::format("bf16 b1 q2048 k2048 h8 {} causal", dims));
    const BackwardOutput output = run_backward(engine_.get(), arrays);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(wrong_gradients(arrays, output), "");
    const double dq = signal_to_noise(arrays, arrays.exact.dq, output.dq);
    const double dk = signal_to_noise(arrays, arrays.exact.dk, output.dk);
    const double dv = signal_to_noise(arrays, arrays.exact.dv, output.dv);
    const std::string figures = std::format("{:.2f} {:.2f} {:.2f}", dq, dk, dv);
    std::cout << "signal to noise of dq, dk, dv in dB, " << dims << ": " << figures << '\n';
    EXPECT_GE(std::min({dq, dk, dv}), 48) << dims << ": " << figures;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LargeGradients, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
