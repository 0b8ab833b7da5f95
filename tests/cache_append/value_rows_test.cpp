// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of value_rows.txt on the simulated GPU: every element's bits and every scale, in its slot and nowhere else. Behind
// the colon of a row stand
//
//   pages=<n>       of the cache; 4
//   narrow_slots    numbers of 4 bytes for slots, not of 8
//   heads_outside   heads stand outside the tokens of K, V and Q
//   in_place        the turned Q stands where Q does
//   zeros           the first token's first head of K is zeros
//   kernel=<word>,… of the kernel's name
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "cache_append/matching.h"
#include "support/worded_rows.h"
#include "templates/attention/call/data_type.h"
#include "templates/cache_append/call/descriptor.h"

namespace wavejit::tests {
namespace {

using cache_append::Access;
using cache_append::PageOrder;
using Order = AppendCase::Order;

std::vector<WordedRow> rows() {
  return worded_rows("cache_append/value_rows.txt",
                     {.words = {"pages", "narrow_slots", "heads_outside", "in_place", "zeros", "kernel"},
                      .targets = "gfx942,gfx950,gfx1201",
                      .name = name_of_words});
}

// Where the elements of pages stand, and K's in units beside V's.
void place(AppendCase& which, const cache_append::ProblemDescriptor& said) {
  const std::map<PageOrder, Order> orders = {{PageOrder::nhd, Order::nhd},
                                             {PageOrder::hnd, Order::hnd},
                                             {PageOrder::vectorised, Order::values_by_dims},
                                             {PageOrder::vectorised_keys, Order::values_by_keys}};
  which.keys = which.values = orders.at(said.pages);
  if (said.pages >= PageOrder::vectorised) {
    which.keys = Order::keys_in_units;
    which.page_layout = said.pages == PageOrder::vectorised ? WAVEJIT_PAGES_VECTORISED : WAVEJIT_PAGES_VECTORISED_KEYS;
    return;
  }
  if (said.key_access == Access::elements) which.keys = Order::dims_apart;
  if (said.value_access == Access::elements) which.values = Order::dims_apart;
}

AppendCase case_of(const WordedRow& row) {
  const auto said = cache_append::parse_descriptor("cache_append " + row.descriptor);
  if (!said) throw std::runtime_error(said.error().detail);
  const bool turns = said->rotary != cache_append::Rotary::none;
  if (said->holes || said->value_dims == 0 || (turns && said->angles != cache_append::Angles::fp32))
    throw std::runtime_error("the row says what no row has: " + row.descriptor);
  AppendCase which = {.type = said->source,
                      .batch = said->batch,
                      .tokens = said->tokens,
                      .heads = said->heads,
                      .query_heads = said->query_heads,
                      .key_dims = said->key_dims,
                      .value_dims = said->value_dims,
                      .pages = static_cast<std::int64_t>(row.number("pages", 4)),
                      .page_size = said->page_size,
                      .source = said->source_access == Access::elements ? Order::dims_apart
                                : row.says("heads_outside")             ? Order::hnd
                                                                        : Order::nhd,
                      .wide_slots = !row.says("narrow_slots"),
                      .rotary = !turns                                              ? WAVEJIT_ROTARY_NONE
                                : said->rotary == cache_append::Rotary::interleaved ? WAVEJIT_ROTARY_INTERLEAVED
                                                                                    : WAVEJIT_ROTARY_HALVES,
                      .rotary_dims = said->rotary_dims,
                      .in_place = row.says("in_place"),
                      .token_scales = said->scales == cache_append::Scales::tokens};
  place(which, *said);
  if (said->cache != said->source) which.narrow = static_cast<wavejit_dtype>(attention::told_type(said->cache));
  if (said->head_scales) {
    which.k_scales = {0.0371F};
    which.v_scales = {1.0F / 3, 0.25F, 0.0009F};
  }
  which = filled(which, seed_of(row.descriptor));
  if (turns) {
    which.positions[3] = which.table_rows;
    which.positions[4] = -1;
  }
  if (row.says("zeros")) std::fill_n(which.k.begin(), which.key_dims, std::uint16_t{0});
  return which;
}

class AppendRows : public ::testing::TestWithParam<WordedRow> {};

TEST_P(AppendRows, HaveTheBitsOfTheReference) {
  const WordedRow& row = GetParam();
  const Engine engine(row.target);
  const AppendOutput output = run_matching(engine.get(), case_of(row));
  for (const std::string& word : parts_of(row.word("kernel")))
    EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(word));
}

INSTANTIATE_TEST_SUITE_P(Listed, AppendRows, ::testing::ValuesIn(rows()), name_in_row);

}  // namespace
}  // namespace wavejit::tests
