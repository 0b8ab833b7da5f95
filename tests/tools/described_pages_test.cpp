// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys in pages as a descriptor gets them: of benchmarks, profiles and predicted pages.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention_forward/program/described_experiment.h"
#include "templates/attention_latent/program/latent_arrays.h"

namespace wavejit::attention::program {
namespace {

// A table of `sequences` rows: a cache that has room for all their pages, and no page twice.
void expect_no_page_twice(const std::vector<std::int32_t>& entries, std::int64_t pages, std::int64_t sequences,
                          std::int64_t pages_of_each) {
  EXPECT_GE(pages, sequences * pages_of_each);
  ASSERT_FALSE(entries.empty());
  const std::int64_t columns = std::ssize(entries) / sequences;
  ASSERT_GE(columns, pages_of_each);
  std::set<std::int32_t> seen;
  for (std::int64_t row = 0; row < sequences; ++row)
    for (std::int64_t column = 0; column < pages_of_each; ++column) {
      const std::int32_t page = entries[static_cast<std::size_t>((row * columns) + column)];
      EXPECT_GE(page, 0);
      EXPECT_LT(page, pages);
      EXPECT_TRUE(seen.insert(page).second) << "page " << page << " of sequence " << row << " is another one's, too";
    }
}

// Seen elsewhere: a benchmark's pool that wraps round, so that its keys come from a cache and not from memory.
TEST(DescribedPages, NoSequenceHasPagesOfAnother) {
  constexpr std::int64_t sequences = 64;
  constexpr std::int64_t keys = 1024;
  for (const std::int64_t page : {1, 16, 128}) {
    const auto problem = attention_forward::program::parse_experiment(
        "attention_forward bf16 b64 q1 k1024 h16/2 d128 causal layout=paged:" + std::to_string(page));
    ASSERT_TRUE(problem.has_value()) << problem.error().what;
    const PageTable table = page_table_of(*problem);
    expect_no_page_twice(table.entries, table.pages, sequences, keys / page);
    // Both kv heads.
    EXPECT_GE(stored(*problem, keys_of(*problem)).rows(), 2 * sequences * keys) << page;
    EXPECT_GE(stored(*problem, values_of(*problem)).rows(), 2 * sequences * keys) << page;
  }
}

TEST(DescribedPages, NoSequenceHasLatentPagesOfAnother) {
  constexpr std::int64_t sequences = 16;
  constexpr std::int64_t keys = 128;
  for (const std::int64_t page : {1, 16, 64}) {
    const auto arrays = attention_latent::program::make_latent_arrays(
        "attention_latent bf16 b16 q1 k128 h1 d320/256 layout=paged:" + std::to_string(page), false);
    ASSERT_TRUE(arrays.has_value()) << arrays.error().what;
    expect_no_page_twice(arrays->table, arrays->pages, sequences, keys / page);
    EXPECT_GE(std::ssize(arrays->k), sequences * keys * 320) << page;
  }
}

}  // namespace
}  // namespace wavejit::attention::program
