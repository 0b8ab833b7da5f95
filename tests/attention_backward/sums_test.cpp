// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients that several calls make together: each goes on with the sums that the one before left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "attention_backward/backward_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using attention::program::Placement;
using ::testing::HasSubstr;

class GradientSums : public ::testing::TestWithParam<const char*> {
 protected:
  BackwardOutput run(const Arrays& arrays, std::uint32_t before, std::uint32_t behind, const Before& gradients = {}) {
    const auto change = [&](wavejit_attention_backward_arguments& call) {
      call.sums_before = before;
      call.sums_behind = behind;
    };
    BackwardOutput output = run_backward(engine_.get(), arrays, change, gradients);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  Engine engine_{GetParam()};
};

struct Piece {
  std::int64_t first;
  std::int64_t end;
};

// Rows `piece` of [row][head][dim]; numbers of rows stand in [head][row].
template <typename Element>
void cut_rows(std::vector<Element>& values, std::int64_t rows, const Piece& piece) {
  const auto each = static_cast<std::ptrdiff_t>(values.size()) / rows;
  values = {values.begin() + (piece.first * each), values.begin() + (piece.end * each)};
}
void cut_numbers(std::vector<float>& values, std::int64_t rows, const Piece& piece) {
  std::vector<float> cut;
  for (std::size_t head = 0; head < values.size() / static_cast<std::size_t>(rows); ++head)
    for (std::int64_t row = piece.first; row < piece.end; ++row)
      cut.push_back(values[(head * static_cast<std::size_t>(rows)) + static_cast<std::size_t>(row)]);
  values = std::move(cut);
}

// One sequence whose rows see every key: a piece of its rows.
Arrays of_rows(const Arrays& all, const Piece& piece) {
  Arrays part = all;
  const std::int64_t rows = all.experiment.query_length;
  part.experiment.query_length = piece.end - piece.first;
  for (auto* values : {&part.q, &part.o, &part.d_o}) cut_rows(*values, rows, piece);
  cut_numbers(part.lse, rows, piece);
  return part;
}

// Causal, as many keys as rows: a piece of its keys: row i sees the keys up to i − first of them, so far to the right
// of their own diagonal.
Arrays of_keys(const Arrays& all, const Piece& piece) {
  Arrays part = all;
  const std::int64_t keys = all.experiment.key_length;
  part.experiment.key_length = piece.end - piece.first;
  part.experiment.mask.bits = WAVEJIT_MASK_WINDOW;
  part.experiment.mask.window_left = -1;
  part.experiment.mask.window_right = static_cast<std::int32_t>(keys - piece.end);
  for (auto* values : {&part.k, &part.v}) cut_rows(*values, keys, piece);
  return part;
}

// If pieces end at multiples of a run, the bits are those of the call that has all rows. With 256 heads a run has 128
// rows; the second piece has two runs. In ./dev soak, because this many heads take seconds.
TEST_P(GradientSums, OfPiecesOfTheRows) {
  if (!whole_lists()) return;
  constexpr std::int64_t rows = 260;
  const Arrays all = backward_arrays("bf16 b1 q" + std::to_string(rows) + " k20 h256/1 d64 gradients=fp32");
  const BackwardOutput whole = run(all, 0, 0);
  EXPECT_EQ(wrong_gradients(all, whole), "");
  Before sums;
  std::vector<std::uint32_t> dq;
  for (const Piece& piece : {Piece{0, 128}, {128, rows}}) {
    const BackwardOutput output = run(of_rows(all, piece), piece.first > 0 ? WAVEJIT_SUMS_OF_DK_DV : 0,
                                      piece.end < rows ? WAVEJIT_SUMS_OF_DK_DV : 0, sums);
    sums.dk = output.dk;
    sums.dv = output.dv;
    dq.insert(dq.end(), output.dq.begin(), output.dq.end());
  }
  EXPECT_TRUE(dq == whole.dq);
  EXPECT_TRUE(sums.dk == whole.dk);
  EXPECT_TRUE(sums.dv == whole.dv);
}

// dQ is one chain, and pieces of whole blocks of 16 keys go on with it.
TEST_P(GradientSums, OfPiecesOfTheKeys) {
  const Arrays all = backward_arrays("fp16 b1 q200 k200 h2/1 d128 causal gradients=fp32");
  const BackwardOutput whole = run(all, 0, 0);
  Before sums;
  std::vector<std::uint32_t> dk;
  for (const Piece& piece : {Piece{0, 80}, {80, 144}, {144, 200}}) {
    const Arrays part = of_keys(all, piece);
    const BackwardOutput output =
        run(part, piece.first > 0 ? WAVEJIT_SUMS_OF_DQ : 0, piece.end < 200 ? WAVEJIT_SUMS_OF_DQ : 0, sums);
    sums.dq = output.dq;
    dk.insert(dk.end(), output.dk.begin(), output.dk.end());
  }
  EXPECT_TRUE(sums.dq == whole.dq);
  EXPECT_TRUE(dk == whole.dk);
}

// What a call adds nothing to stays: keys that do not count, rows that see nothing, a sequence without rows.
TEST_P(GradientSums, StayWhereThereIsNothingToAdd) {
  const Arrays arrays = backward_arrays("bf16 b2 q40 k50 h1 d64 causal k_lengths=50,20 gradients=fp32");
  Before sums;
  for (auto* of : {&sums.dq, &sums.dk, &sums.dv}) of->assign(std::size_t{100} * 64, 0x3FC00000);  // 1.5
  sums.dq.resize(std::size_t{80} * 64);
  const BackwardOutput output = run(arrays, 3, 3, sums);
  for (std::size_t i = std::size_t{40} * 64; i < std::size_t{60} * 64; ++i) ASSERT_EQ(output.dq[i], 0x3FC00000U) << i;
  for (std::size_t i = std::size_t{70} * 64; i < std::size_t{100} * 64; ++i) {
    ASSERT_EQ(output.dk[i], 0x3FC00000U) << i;
    ASSERT_EQ(output.dv[i], 0x3FC00000U) << i;
  }
  // One run is added to what was there, element by element.
  const BackwardOutput alone = run(arrays, 0, 3);
  for (std::size_t i = 0; i < std::size_t{70} * 64; ++i) {
    ASSERT_EQ(std::bit_cast<float>(output.dk[i]), 1.5F + std::bit_cast<float>(alone.dk[i])) << i;
    ASSERT_EQ(std::bit_cast<float>(output.dv[i]), 1.5F + std::bit_cast<float>(alone.dv[i])) << i;
  }
}

TEST_P(GradientSums, AreFp32) {
  const Arrays arrays = backward_arrays("bf16 b1 q40 k40 h1 d64 causal");
  for (const auto& [field, member] : {std::pair{"sums_before", &wavejit_attention_backward_arguments::sums_before},
                                      {"sums_behind", &wavejit_attention_backward_arguments::sums_behind}})
    for (const std::uint32_t bits : {1U, 4U}) {
      const BackwardOutput output = run_backward(engine_.get(), arrays, [&](auto& call) { call.*member = bits; });
      EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT);
      EXPECT_THAT(output.detail, HasSubstr(std::string(field) + " = " + std::to_string(bits)));
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, GradientSums, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
