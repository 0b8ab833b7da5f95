// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of value_rows.txt on the simulated GPU: against float64, element by element, with the same bits under every order of
// waves. Behind the colon of a row stand
//
//   spread=<x>      of normal scores; 3
//   told=<n>,<n>    key lengths that are none
//   kernel=<word>,… of the kernel's name
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "attention/schedules.h"
#include "softmax_lse/softmax_run.h"
#include "support/worded_rows.h"
#include "templates/softmax_lse/call/descriptor.h"

namespace wavejit::tests {
namespace {

std::vector<WordedRow> rows() {
  return worded_rows("softmax_lse/value_rows.txt", {.words = {"spread", "told", "kernel"}, .name = name_of_words});
}

SoftmaxCase case_of(const WordedRow& row) {
  const auto said = softmax_lse::parse_descriptor("softmax_lse " + row.descriptor);
  if (!said || !said->lse || !said->weights || said->unaligned)
    throw std::runtime_error(said ? "the row says what no row has" : said.error().detail);
  SoftmaxCase which = softmax_case(said->scores, *said->weights, said->query_length, said->key_length,
                                   seed_of(row.descriptor), row.number("spread", 3), said->batch, said->heads);
  const wavejit_masking mask = attention::masking_of(said->mask);
  which.causal = (mask.bits & WAVEJIT_MASK_CAUSAL) != 0;
  if ((mask.bits & WAVEJIT_MASK_WINDOW) != 0) which.window = {mask.window_left, mask.window_right};
  if ((mask.bits & WAVEJIT_MASK_PREFIX) != 0) which.prefix = mask.causal_prefix;
  which.key_lengths = {said->key_lengths.begin(), said->key_lengths.end()};
  if (row.says("told")) which.key_lengths = numbers_of(row.word("told"));
  if (!said->scale.empty()) which.scale = std::stof(said->scale);
  return which;
}

class SoftmaxRows : public ::testing::TestWithParam<WordedRow> {};

TEST_P(SoftmaxRows, MatchFloat64AndShowNoOrderOfWaves) {
  const WordedRow& row = GetParam();
  const Engine engine(row.target);
  const SoftmaxCase which = case_of(row);
  const SoftmaxOutput first = same_under_all_schedules([&] {
    SoftmaxOutput output = run_softmax(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the weights or LSE was written";
    return output;
  });
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(wrong_softmax(which, first), "");
  for (const std::string& word : parts_of(row.word("kernel")))
    EXPECT_THAT(first.kernel_spec, ::testing::HasSubstr(word));
  // Rows that see no key, exactly.
  for (std::size_t at = 0; at < which.count(); ++at) {
    const auto [begin, end] = which.seen(static_cast<std::int64_t>(at) / (which.heads * which.rows),
                                         static_cast<std::int64_t>(at) % which.rows);
    const auto keys = static_cast<std::size_t>(which.keys);
    if (begin == end)
      EXPECT_TRUE(std::ranges::all_of(std::span(first.weights).subspan(at * keys, keys), [](auto bits) {
        return bits == 0;
      })) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Listed, SoftmaxRows, ::testing::ValuesIn(rows()), name_in_row);

}  // namespace
}  // namespace wavejit::tests
