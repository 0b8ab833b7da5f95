// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of value_rows.txt on the simulated GPU: scores against float64, lists against a sort of the very scores, with the same
// bits under every order of waves, without pages and in bf16. Behind the colon of a row stand
//
//   readers=<n>     rows that share their keys: 1 or 4
//   told=<n>,<n>    key lengths that are none; begins=, ends=: of each row
//   list            pages as CSR
//   no_values       indices alone
//   distinct=<n>, every_second, bit=<n>  scores: of n values; each second is 0.5; numbers that differ in one bit
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "sparse_indexer/indexer_run.h"
#include "support/worded_rows.h"
#include "templates/attention/call/data_type.h"
#include "templates/sparse_indexer/call/descriptor.h"

namespace wavejit::tests {
namespace {

std::vector<WordedRow> rows() {
  return worded_rows("sparse_indexer/value_rows.txt", {.words = {"readers", "told", "begins", "ends", "list",
                                                                 "no_values", "distinct", "every_second", "bit"},
                                                       .name = name_of_words});
}

void change_scores(std::vector<float>& scores, const WordedRow& row) {
  std::mt19937 random(5);  // NOLINT(bugprone-random-generator-seed): the same numbers in every run
  const auto distinct = static_cast<unsigned>(row.number("distinct", 1));
  const auto bit = static_cast<unsigned>(row.number("bit", 0));
  for (std::size_t at = 0; at < scores.size(); ++at) {
    if (row.says("distinct")) scores[at] = static_cast<float>(random() % distinct) - 1.0F;
    if (row.says("every_second") && at % 2 == 0) scores[at] = 0.5F;
    // Numbers of both signs, denormals among them.
    const std::uint32_t base = (at % 3 == 0 ? 0x80000000U : 0U) | 0x00000400U;
    if (row.says("bit")) scores[at] = std::bit_cast<float>(base ^ (at % 2 == 0 ? 1U << bit : 0U));
  }
}

IndexerCase case_of(const WordedRow& row) {
  const auto said = sparse_indexer::parse_descriptor("sparse_indexer " + row.descriptor);
  if (!said) throw std::runtime_error(said.error().detail);
  const std::uint64_t seed = seed_of(row.descriptor);
  const std::int64_t batch = said->batch;
  const std::int64_t keys = said->key_length;
  const auto type = static_cast<wavejit_dtype>(attention::told_type(said->type));
  const bool bytes = type != WAVEJIT_BF16 && type != WAVEJIT_FP16;
  IndexerCase which =
      said->heads == 0 ? given_scores(batch, said->query_length, keys, said->top_k, seed)
      : bytes ? byte_case(byte_format(type), batch, said->query_length, keys, said->heads, said->top_k, seed)
              : indexer_case(type == WAVEJIT_BF16 ? Storage::bf16 : Storage::fp16, batch, said->query_length, keys,
                             said->heads, said->top_k, seed);
  change_scores(which.scores, row);
  for (std::int64_t at = 0; said->key_scales && at < batch * keys; ++at)
    which.key_scales.push_back(bytes ? 0.003F + (0.0007F * static_cast<float>(at % 77))
                                     : 0.25F + (0.001F * static_cast<float>(at % 777)));
  which.page = static_cast<int>(said->page_size);
  which.list = row.says("list");
  const wavejit_masking mask = attention::masking_of(said->mask);
  which.causal = (mask.bits & WAVEJIT_MASK_CAUSAL) != 0;
  if ((mask.bits & WAVEJIT_MASK_WINDOW) != 0) which.window = {mask.window_left, mask.window_right};
  if ((mask.bits & WAVEJIT_MASK_PREFIX) != 0) which.prefix = mask.causal_prefix;
  which.key_lengths = {said->key_lengths.begin(), said->key_lengths.end()};
  if (row.says("told")) which.key_lengths = numbers_of(row.word("told"));
  which.key_begins = numbers_of(row.word("begins"));
  which.key_ends = numbers_of(row.word("ends"));
  which.wants_scores = said->scores || said->top_k == 0;
  which.wants_values = !row.says("no_values");
  return which;
}

class IndexerRows : public ::testing::TestWithParam<WordedRow> {
 protected:
  static IndexerOutput run(const Engine& engine, const IndexerCase& which) {
    IndexerOutput output = run_indexer(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the outputs was written";
    return output;
  }
  static void expect_same(const IndexerOutput& one, const IndexerOutput& other) {
    EXPECT_TRUE(one == other) << one.kernel_spec << " beside " << other.kernel_spec;
  }
};

TEST_P(IndexerRows, MatchFloat64AndASortAndShowNoOrderOfWaves) {
  const WordedRow& row = GetParam();
  const std::string pin = "auto" + (row.says("readers") ? " tile_queries=" + row.word("readers") : "");
  const Engine engine(row.target, nullptr, pin.c_str());
  const IndexerCase which = case_of(row);
  const IndexerOutput output = same_under_all_schedules([&] { return run(engine, which); });
  ASSERT_FALSE(HasFailure());
  if (row.says("readers")) EXPECT_EQ(output.kernel_spec.contains(" shared "), row.word("readers") == "4");
  if (which.heads != 0) EXPECT_EQ(wrong_scores(which, output), "");
  if (which.top != 0) EXPECT_EQ(wrong_lists(which, output, which.heads == 0 ? which.scores : output.scores), "");
  IndexerCase other = which;
  if (which.page != 0) {
    other.page = 0;
    expect_same(run(engine, other), output);
    other = which;
  }
  if (which.bytes == nullptr) return;
  EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(std::string("sparse_scores ") + which.bytes->name + " "));
  other.bytes = nullptr;
  const IndexerOutput wide = run(engine, other);
  EXPECT_THAT(wide.kernel_spec, ::testing::HasSubstr("sparse_scores bf16 "));
  expect_same(wide, output);
}

INSTANTIATE_TEST_SUITE_P(Listed, IndexerRows, ::testing::ValuesIn(rows()), name_in_row);

}  // namespace
}  // namespace wavejit::tests
