// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults that other implementations of paged attention have published, a test by name for each. The simulated GPU
// knows where every allocation ends: what reads past a table or a cache is told, also when it does no harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class PagedFaults : public ::testing::TestWithParam<std::string> {
 protected:
  static AttentionCase make(int queries, const std::vector<std::int32_t>& keys, int dim, int heads, int kv_heads,
                            std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys),
                                    heads, kv_heads, dim, true, seed);
    which.inputs.key_lengths = keys;
    return which;
  }

  AttentionOutput run(const AttentionCase& which, wavejit_simgpu_schedule schedule) {
    set_schedule(schedule, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  // The bits of dense keys, which float64 has judged.
  AttentionOutput dense(const AttentionCase& which) {
    AttentionOutput output = run(which, WAVEJIT_SIMGPU_IN_ORDER);
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    return output;
  }

  // Pages in rows; the same case with vectorised ones has the same fault, or none. In both of V's layouts by turns.
  AttentionOutput expect_bits(const AttentionOutput& same, const AttentionCase& which, Pages pages) {
    AttentionOutput output = expect_bits_once(same, which, pages);
    if (pages.size == 1) return output;
    pages.layout = pages.list || pages.size == 48 ? WAVEJIT_PAGES_VECTORISED_KEYS : WAVEJIT_PAGES_VECTORISED;
    expect_bits_once(same, which, pages);
    return output;
  }
  AttentionOutput expect_bits_once(const AttentionOutput& same, AttentionCase which, const Pages& pages) {
    which.pages = pages;
    AttentionOutput output = run(which, WAVEJIT_SIMGPU_REVERSE);
    EXPECT_TRUE(output.o == same.o) << "O differs, page size " << pages.size << ", layout " << pages.layout;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(same.lse))
        << "LSE differs, page size " << pages.size << ", layout " << pages.layout;
    return output;
  }

  Engine engine_{GetParam()};
};

// rocm-libraries#6932: the pages of the last tile are fetched ahead, and the one behind them.
TEST_P(PagedFaults, ThePrefetchReadsNoEntryPastTheRow) {
  const AttentionCase which = make(3, {64, 192}, 64, 2, 1, 1);
  const AttentionOutput same = dense(which);
  for (const int size : {1, 16, 64})
    for (const bool list : {false, true}) expect_bits(same, which, {.size = size, .list = list, .tight = true});
}

// ROCm/aiter#5474: entries loaded four at a time are another sequence's where a row does not begin at a multiple of
// four; a sequence without keys has no page to fetch ahead.
TEST_P(PagedFaults, RowsOfTheTableNeedNoAlignmentAndEmptySequencesNoPage) {
  const AttentionCase which = make(1, {0, 70, 0, 75, 33}, 64, 4, 1, 2);
  const AttentionOutput same = dense(which);
  for (const bool list : {false, true}) {
    expect_bits(same, which, {.size = 16, .list = list, .tight = true});  // rows of five entries
    expect_bits(same, which, {.size = 1, .list = list, .tight = true});
  }
  const AttentionCase empty = make(2, {1, 0}, 64, 2, 1, 3);
  expect_bits(dense(empty), empty, {.size = 16, .list = true, .tight = true});
}

// ROCm/aiter#2517 and #5518: caches beyond 4 GiB read as zeros, at 8.4 million pages and at offsets of 4.6 · 10⁹ bytes.
// tokenspeed#521: page numbers from 65,536 on hang.
TEST_P(PagedFaults, ManyPagesBeyondFourGiB) {
  const AttentionCase which = make(2, {100, 130}, 64, 1, 1, 4);
  expect_bits(dense(which), which, {.size = 16, .total = 8'400'000});
}

// ROCm/aiter#3824, rocm-libraries#9214: faults where base and offset carry into the upper half of an address.
TEST_P(PagedFaults, PagesOnBothSidesOfAFourGiBBorder) {
  const AttentionCase which = make(2, {200, 130}, 128, 2, 2, 5);
  const AttentionOutput same = dense(which);
  expect_bits(same, which, {.size = 16, .in_turn = true, .total = 600'000, .at_border = true});
  expect_bits(same, which, {.size = 48, .in_turn = true, .total = 200'000, .at_border = true});
}

// vllm#48450: beyond 2 GiB another kernel runs, and nobody says so.
TEST_P(PagedFaults, ALargeCacheHasTheKernelOfASmallOne) {
  const AttentionCase which = make(1, {40}, 64, 2, 1, 6);
  const AttentionOutput same = dense(which);
  const AttentionOutput small = expect_bits(same, which, {.size = 64});
  EXPECT_EQ(expect_bits(same, which, {.size = 64, .total = 200'000}).kernel_spec, small.kernel_spec);
}

// flashinfer#4971: a weight of 0 times NaN in an unused slot reaches O. Every slot without a key holds NaN here.
TEST_P(PagedFaults, UnusedSlotsOfTheLastPageMayHoldNaN) {
  const AttentionCase which = make(3, {1, 15, 17, 63, 65}, 128, 4, 2, 7);
  const AttentionOutput same = dense(which);
  for (const int size : {1, 16, 64, 528}) expect_bits(same, which, {.size = size});
}

// Lengths beyond the host's maximum show no key beyond it, whatever the device says. Their diagonals stand where they
// put them, so that both rows see all keys.
TEST_P(PagedFaults, LengthsBeyondTheMaximumAreCutToIt) {
  AttentionCase which = make(2, {130, 130}, 64, 2, 1, 8);
  AttentionCase without_diagonal = which;
  without_diagonal.inputs.causal = false;
  const AttentionOutput same = dense(without_diagonal);
  which.told_key_lengths = {131, std::numeric_limits<std::int32_t>::max()};
  for (const int size : {1, 16}) expect_bits(same, which, {.size = size, .tight = true});
  which.told_key_lengths = {-1, std::numeric_limits<std::int32_t>::min()};
  which.pages = Pages{.size = 16};
  const AttentionOutput none = run(which, WAVEJIT_SIMGPU_REVERSE);
  EXPECT_TRUE(std::ranges::all_of(none.o, [](std::uint16_t bits) { return bits == 0; }));
}

// A sequence whose length goes beyond its list of pages has no entry behind the list's end, and no other sequence's bits
// change. The table of the last sequence ends where its memory does.
TEST_P(PagedFaults, AListThatIsTooShortIsNotReadPastItsEnd) {
  AttentionCase which = make(1, {130, 40}, 64, 2, 1, 10);
  const AttentionOutput same = dense(which);
  which.told_key_lengths = {130, 130};
  for (const int size : {1, 16}) {
    which.pages = Pages{.size = size, .list = true, .tight = true};
    const AttentionOutput output = run(which, WAVEJIT_SIMGPU_REVERSE);
    const std::size_t elements = same.o.size() / 2;
    EXPECT_TRUE(std::ranges::equal(std::span(output.o).first(elements), std::span(same.o).first(elements)))
        << "page size " << size;
  }
}

// ROCm/vllm#1308: partial results for one query a sequence, where a verification step has several.
TEST_P(PagedFaults, PartsOfSeveralQueriesStayInsideTheWorkspace) {
  AttentionCase which = make(4, {1100, 2049}, 64, 8, 2, 9);
  const AttentionOutput same = dense(which);
  which.splits = 3;  // the workspace lies between fences
  expect_bits(same, which, {.size = 16});
}

INSTANTIATE_TEST_SUITE_P(All, PagedFaults, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
