// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q, K and V in e4m3 (docs/canonical-arithmetic.md, "Queries in 8 bits"): against float64 element by element, the same
// bits under every wave schedule, with every check, on every pipeline, and whatever stands beside a row.
#include "kernels/byte_queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <format>
#include <limits>
#include <numbers>
#include <random>
#include <regex>
#include <span>
#include <string>
#include <utility>

#include "support/bits_of.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using attention_forward::DataType;
using attention_forward::ForwardKernel;
using attention_forward::Mask;
using attention_forward::Pipeline;

ByteCase on(ByteCase which, Pipeline pipeline, int rows) {
  which.spec.pipeline = pipeline;
  which.spec.tile_queries = rows;
  which.spec.whole_tiles = which.page != 0 && pipeline != Pipeline::generic;
  return which;
}
ByteCase dualwave(ByteCase which) { return on(std::move(which), Pipeline::dualwave, 256); }

// A weight is off by 2⁻⁴ of it at most, or by 2⁻¹⁸ of the largest; l by as much. O is rounded once more.
void expect_near(const ByteCase& which, const ByteResult& result, double least_decibels) {
  const AttentionAnswer exact = attention_reference(which.inputs);
  ASSERT_EQ(exact.o.size(), result.values.size());
  const auto dims = static_cast<std::size_t>(which.inputs.value_dim());
  const double rounding = which.spec.output == attention::OutputType::fp32 ? 0x1p-20
                          : which.spec.dtype == DataType::bf16             ? 0x1p-8
                                                                           : 0x1p-11;
  const double vanished = which.inputs.key_length * 0x1p-16;
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < exact.o.size(); ++i) {
    const double error = std::fabs(result.values[i] - exact.o[i]);
    const double bound = (0x1p-4 * exact.magnitude[i]) + vanished + (rounding * std::fabs(exact.o[i]));
    ASSERT_LE(error, bound) << "element " << i % dims << " of row " << i / dims << ": " << result.values[i]
                            << " and not " << exact.o[i];
    signal += exact.o[i] * exact.o[i];
    noise += error * error;
  }
  if (signal > 0) EXPECT_GE(10 * std::log10(signal / noise), least_decibels);
  for (std::size_t i = 0; i < exact.lse.size(); ++i) {
    if (std::isinf(exact.lse[i])) {
      ASSERT_EQ(result.lse[i], static_cast<float>(exact.lse[i])) << i;
    } else {
      // ln(1 + 2⁻⁴), and f32.
      ASSERT_NEAR(result.lse[i], exact.lse[i], 0.0607 + (1e-6 * std::fabs(exact.lse[i]))) << i;
    }
  }
}

void expect_same(const ByteResult& result, const ByteResult& wanted) {
  EXPECT_EQ(result.fault + result.reports, "");
  EXPECT_TRUE(result.fence_intact) << "something outside O or LSE was written";
  EXPECT_EQ(result.spills, 0U);
  EXPECT_TRUE(result.o == wanted.o) << "O is another one";
  EXPECT_TRUE(bits_of(result.lse) == bits_of(wanted.lse)) << "LSE is another one";
}

// Against float64 once; then the same bits under other schedules, one of them with every check, and by dual-wave.
ByteResult check(const ByteCase& which, double least_decibels = 31) {
  SCOPED_TRACE(attention_forward::to_text(which.spec));
  const ByteResult first = run_bytes(which, WAVEJIT_SIMGPU_IN_ORDER, 1, false);
  EXPECT_EQ(first.fault, "") << first.reports;
  if (!first.fault.empty()) return first;
  expect_near(which, first, least_decibels);
  expect_same(run_bytes(which, WAVEJIT_SIMGPU_REVERSE, 2, true), first);
  expect_same(run_bytes(which, WAVEJIT_SIMGPU_RANDOM, 3, false), first);
  return first;
}
void check_both(const ByteCase& which, double least_decibels = 31) {
  const ByteResult generic = check(which, least_decibels);
  const ByteCase other = dualwave(which);
  SCOPED_TRACE(attention_forward::to_text(other.spec));
  expect_same(run_bytes(other, WAVEJIT_SIMGPU_REVERSE, 2, true), generic);
  expect_same(run_bytes(other, WAVEJIT_SIMGPU_RANDOM, 4, false), generic);
}

TEST(ByteQueries, DenseKeysMatchFloat64) {
  check_both(make_byte_case(2, 130, 200, 4, 2, 128, 1));
  ByteCase which = make_byte_case(1, 33, 77, 2, 1, 128, 2);
  which.spec.dtype = DataType::fp16;
  which.inputs.scale = -which.inputs.scale;
  check_both(which);
  which.spec.output = attention::OutputType::fp32;
  which.spec.output_store = attention_forward::OutputStore::scalar;
  check_both(which);
  check(make_byte_case(1, 40, 100, 1, 1, 256, 3));
  // Half a piece of LDS a row.
  check(make_byte_case(2, 130, 200, 4, 2, 64, 4));
}

// One key to several chunks of 1,024, odd and even numbers of tiles, rows of one workgroup and of two.
TEST(ByteQueries, LengthsMatchFloat64) {
  int seed = 10;
  int index = 0;
  for (const auto& [queries, keys] : {std::pair{1, 1}, {70, 64}, {5, 129}, {257, 300}, {3, 1025}, {40, 2200}}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(std::format("{} rows, {} keys", queries, keys));
    check_both(make_byte_case(1, queries, keys, 1, 1, 128, ++seed), keys < 3 ? 45 : 31);
  }
}

TEST(ByteQueries, MasksMatchFloat64) {
  ByteCase which = make_byte_case(1, 270, 300, 2, 1, 128, 21);
  which.spec.mask = Mask::causal;
  which.inputs.causal = true;
  check_both(which);
  ByteCase paired = dualwave(which);
  paired.spec.paired_tiles = true;
  expect_same(run_bytes(paired, WAVEJIT_SIMGPU_REVERSE, 2, true), run_bytes(which, WAVEJIT_SIMGPU_IN_ORDER, 1, false));
  // Rows without a key.
  which = make_byte_case(1, 130, 70, 1, 1, 128, 22);
  which.spec.mask = Mask::causal;
  which.inputs.causal = true;
  check_both(which);
  which = make_byte_case(1, 200, 330, 1, 1, 128, 23);
  which.spec.mask = Mask::window;
  which.inputs.window = true;
  which.inputs.window_left = 90;
  which.inputs.window_right = 5;
  check_both(which);
}

// Rows that one key or two dominate, and weights that vanish.
TEST(ByteQueries, SteepAndFlatRowsMatchFloat64) {
  check_both(make_byte_case(1, 64, 300, 1, 1, 128, 31, 4), 25);
  check_both(make_byte_case(1, 64, 300, 1, 1, 128, 32, 0.05), 28);
  // N is no maximum that may fall behind: a threshold is of no weight.
  ByteCase which = make_byte_case(1, 64, 300, 1, 1, 128, 33, 2);
  const ByteResult wanted = check(which, 25);
  which.rescale_threshold = 0;
  for (const ByteCase& each : {which, dualwave(which)})
    expect_same(run_bytes(each, WAVEJIT_SIMGPU_REVERSE, 2, true), wanted);
}

// Scores that grow by this many powers of two a tile that O leaves its units once, or with each tile, beside rows that
// stay; and a maximum that falls from the first tile on. Against float64: factors are powers of two.
TEST(ByteQueries, UnitsThatAreLeftMatchFloat64) {
  for (const double step : {30.0, 70.0, -30.0}) {
    SCOPED_TRACE(step);
    ByteCase which = make_byte_case(1, 64, 640, 1, 1, 128, 63, 0.5);
    AttentionInputs& in = which.inputs;
    // The first dim of every second row multiplies the tile's number.
    for (int row = 0; row < in.query_length; ++row) in.q[static_cast<std::size_t>(row) * 128] = row % 2 == 0 ? 1 : 0;
    for (int key = 0; key < in.key_length; ++key)
      in.k[static_cast<std::size_t>(key) * 128] = static_cast<float>((step < 0 ? -1 : 1) * (key / 64));
    in.scale = std::fabs(step) / std::numbers::log2e;
    check_both(which, 25);
  }
}

// Small workgroups, and heads packed into rows.
TEST(ByteQueries, RowsOfAWorkgroupDoNotShow) {
  const ByteCase which = make_byte_case(2, 20, 150, 4, 2, 128, 41);
  const ByteResult wanted = check(which);
  for (const int rows : {32, 64})
    expect_same(run_bytes(on(which, Pipeline::generic, rows), WAVEJIT_SIMGPU_REVERSE, 1, true), wanted);
  ByteCase packed = on(which, Pipeline::generic, 64);
  packed.spec.packed_heads = true;
  expect_same(run_bytes(packed, WAVEJIT_SIMGPU_REVERSE, 1, true), wanted);
}

// A sequence has its bits alone, beside others, packed among them, and in pages.
TEST(ByteQueries, NeighboursDoNotShow) {
  const ByteCase dense = make_byte_case(3, 70, 200, 2, 1, 128, 51);
  const ByteResult wanted = check(dense);
  ByteCase packed = dense;
  packed.inputs.query_starts = {0, 70, 140, 210};
  packed.inputs.key_starts = {0, 200, 400, 600};
  ByteCase paged = dense;
  paged.spec.paged = true;
  paged.inputs.key_lengths = {200, 200, 200};
  for (const bool overlapped : {false, true}) {
    SCOPED_TRACE(overlapped);
    const auto run = [&](const ByteCase& which) {
      return run_bytes(overlapped ? dualwave(which) : which, WAVEJIT_SIMGPU_REVERSE, 2, true);
    };
    const ByteResult result = run(packed);
    EXPECT_EQ(result.fault + result.reports, "");
    EXPECT_TRUE(result.o == wanted.o);
    for (const int page : {64, 128}) {
      paged.page = page;
      expect_same(run(paged), wanted);
    }
    if (overlapped) continue;
    for (const int page : {16, 48}) {
      paged.page = page;
      expect_same(run(paged), wanted);
    }
  }
  for (int sequence = 0; sequence < 3; ++sequence) {
    ByteCase alone = dense;
    alone.inputs.batch = 1;
    const auto take = [&](std::vector<float>& values) {
      const std::size_t part = values.size() / 3;
      values = {values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<std::size_t>(sequence)),
                values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<std::size_t>(sequence + 1))};
    };
    take(alone.inputs.q);
    take(alone.inputs.k);
    take(alone.inputs.v);
    const ByteResult result = run_bytes(dualwave(alone), WAVEJIT_SIMGPU_IN_ORDER, 1, false);
    const std::size_t part = wanted.o.size() / 3;
    EXPECT_TRUE(
        std::ranges::equal(result.o, std::span(wanted.o).subspan(part * static_cast<std::size_t>(sequence), part)));
  }
}

// Packed sequences of other lengths, one of them without keys, and lengths in device memory.
TEST(ByteQueries, RaggedSequencesMatchFloat64) {
  ByteCase which = make_byte_case(1, 300, 500, 2, 1, 128, 52);
  which.inputs.batch = 3;
  which.inputs.query_length = 200;
  which.inputs.key_length = 300;
  which.inputs.query_starts = {0, 30, 100, 300};
  which.inputs.key_starts = {0, 200, 200, 500};
  which.spec.mask = Mask::causal;
  which.inputs.causal = true;
  check_both(which);
}

// V of ones: P and its sum cancel, whatever P is, unless one overflows (NaN) or all vanish. Scores grow from tile to
// tile by a little less or more than the headroom, at sizes at which products with c are rounded by
// whole powers.
TEST(ByteQueries, WeightsDoNotOverflow) {
  int index = 0;
  for (const double step : {0.45, 0.5, 0.55, 3.0}) {
    for (const double base : {0.0, 1e2, 1e5, 1e7}) {
      if (!in_part(index++, 3)) continue;
      SCOPED_TRACE(std::format("{} a tile from {}", step, base));
      ByteCase which = make_byte_case(1, 32, 640, 1, 1, 128, 61);
      AttentionInputs& in = which.inputs;
      std::ranges::fill(in.v, 1.0F);
      std::ranges::fill(in.q, 1.0F);
      // Scores 0, 1, 2, … of the tiles, and a constant beside them.
      for (int key = 0; key < in.key_length; ++key)
        for (int dim = 0; dim < 128; ++dim)
          in.k[static_cast<std::size_t>((key * 128) + dim)] = dim == 0   ? static_cast<float>(key / 64)
                                                              : dim < 65 ? 448.0F
                                                                         : 0.0F;
      if (base == 0) std::ranges::transform(in.k, in.k.begin(), [](float value) { return value == 448 ? 0 : value; });
      in.scale = base == 0 ? step / std::numbers::log2e : std::max(step, base / 28672) / std::numbers::log2e;
      for (const ByteCase& each : {which, dualwave(which)}) {
        const ByteResult result = run_bytes(each, WAVEJIT_SIMGPU_IN_ORDER, 1, false);
        EXPECT_EQ(result.fault, "");
        for (const float value : result.values) ASSERT_EQ(value, 1.0F);
        for (const float value : result.lse) ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

// Why: in f32 as the kernel computes it, the exponent of no score up to the largest of its tile passes log2 448. Nor do
// sums: weights of a tile of 64 keys are multiplied by values up to 448 and by 2⁶⁴ at most, and 2³¹ keys are 2²⁵ tiles.
TEST(ByteQueries, NoExponentPasses448) {
  std::mt19937_64 random(62);
  std::uniform_real_distribution<float> exponent(-20, 60);
  std::uniform_real_distribution<float> unit(-1, 1);
  float largest = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const float c = std::exp2(exponent(random) - 30);
    const float s = unit(random) * 25'690'112;  // 448² · 128
    if (std::fabs(s * c) > 0x1p60F) continue;
    const float product = std::fma(s, c, -0.5F);
    const float power = std::ceil(std::fma(std::fabs(product), 0x1p-22F, product));
    largest = std::max(largest, std::fma(s, c, 8.0F - power));
  }
  EXPECT_GT(largest, 8.49F) << "nothing came near";
  EXPECT_LT(largest, 8.51F);
  constexpr double largest_byte = 448;
  const double of_tile = std::exp2(static_cast<double>(largest)) * largest_byte * 64 * 0x1p64;
  EXPECT_LT(of_tile * 0x1p25, std::numeric_limits<float>::max());
}

// The race of a published kernel: a group of waves leaves a barrier before the other has waited for what it fetched.
TEST(ByteQueries, AWaitBehindItsBarrierIsFound) {
  ByteCase which = dualwave(make_byte_case(1, 256, 640, 1, 1, 128, 71));
  int moved = 0;
  which.changed = [&](const std::string& ir) {
    // Waits for transfers go behind the barrier; those for LDS reads stay.
    static const std::regex pair(
        R"((call void @llvm\.amdgcn\.s\.waitcnt\(i32 )(-?\d+)(\)[^\n]*\n\s*)((?:[^\n]*setprio[^\n]*\n\s*)?(?:tail )?call void @llvm\.amdgcn\.s\.barrier\(\)[^\n]*\n))");
    std::string changed;
    auto from = ir.cbegin();
    for (std::smatch found; std::regex_search(from, ir.cend(), found, pair); from = found.suffix().first) {
      const int wait = std::stoi(found[2]);
      constexpr int transfers = 0xC00F;
      changed.append(from, found[0].first);
      if ((wait & transfers) == transfers) {
        changed += found.str();
        continue;
      }
      ++moved;
      changed += found.str(1) + std::to_string(wait | transfers) + found.str(3) + found.str(4) + "  " + found.str(1) +
                 std::to_string(wait) + ")\n";
    }
    changed.append(from, ir.cend());
    return changed;
  };
  const ByteResult result = run_bytes(which, WAVEJIT_SIMGPU_REVERSE, 1, true);
  EXPECT_GT(moved, 4);
  EXPECT_NE(result.reports.find("race"), std::string::npos) << result.fault << result.reports;
}

TEST(ByteQueries, OthersAreRefusedWithTheReason) {
  const auto refusal = [](const auto& change) {
    ForwardKernel spec = make_byte_case(1, 1, 1, 1, 1, 128, 1).spec;
    change(spec);
    return attention_forward::refusal_of(spec).value_or("");
  };
  EXPECT_EQ(refusal([](ForwardKernel&) {}), "");
  EXPECT_NE(refusal([](ForwardKernel& spec) {
              spec.target = "gfx942";
              spec.output_store = attention_forward::OutputStore::scalar;
            }).find("v_mfma_f32_32x32x64_f8f6f4"),
            std::string::npos);
  EXPECT_NE(refusal([](ForwardKernel& spec) {
              spec.head_dim_qk = spec.head_dim_v = 64;
              spec.pipeline = Pipeline::dualwave;
              spec.tile_queries = 256;
            }).find("head dim 64"),
            std::string::npos);
  EXPECT_NE(refusal([](ForwardKernel& spec) { spec.modifiers.add(attention_forward::Modifier::bias); }).find("bias"),
            std::string::npos);
  EXPECT_NE(refusal([](ForwardKernel& spec) { spec.vectorised = spec.paged = true; }).find("vectorised"),
            std::string::npos);
}

}  // namespace
}  // namespace wavejit::tests
