// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys behind the diagonal of the last row, in this call: whatever stands in their rows of the KV cache, bits are those of
// a clean cache. Lengths may be those of the whole cache, whose rest nobody has written yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "attention_latent/latent_run.h"
#include "templates/attention/program/experiment.h"
#include "tools/byte_float.h"

namespace wavejit::tests {
namespace {

constexpr std::uint16_t not_a_number = 0x7FFF;  // in bf16 and in fp16

std::int64_t slot_of(const LatentArrays& arrays, std::int64_t sequence, std::int64_t key) {
  const auto& of = arrays.experiment;
  if (!of.paged()) return attention::program::sequences_of(of)[static_cast<std::size_t>(sequence)].first_key + key;
  const std::int64_t size = of.page_size;
  const std::int64_t entry = (sequence * arrays.table_columns) + (key / size);
  return (arrays.table[static_cast<std::size_t>(entry)] * size) + (key % size);
}

template <typename Number>
void fill_row(std::vector<Number>& numbers, std::int64_t begin, std::int64_t count, Number value) {
  if (!numbers.empty()) std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(begin), count, value);
}

// NaN in the row of one key, and in its scales.
void spoil(LatentArrays& arrays, std::int64_t slot) {
  const std::int64_t rope = arrays.rope();
  if (arrays.row_scales == 64) {
    // A page's rows of 576 bytes, then 8 exponents for each row.
    const std::int64_t keys = arrays.experiment.page_size;
    const std::int64_t page = slot / keys * arrays.key_stride(keys);
    fill_row<std::uint8_t>(arrays.k_bytes, page + (slot % keys * 576), 576, 0xFF);
    fill_row<std::uint8_t>(arrays.k_bytes, page + (keys * 576) + (slot % keys * 8), 8, 0xFF);
    return;
  }
  const std::int64_t columns = arrays.key_columns();
  if (arrays.row_scales == 128) return fill_row<std::uint8_t>(arrays.k_bytes, slot * columns, columns, 0xFF);
  if (const auto type = tools::byte_type_of(arrays.experiment.cache_dtype)) {
    fill_row<std::uint8_t>(arrays.k_bytes, slot * columns, columns, tools::nan_of(*type));
    return fill_row<std::uint8_t>(arrays.k_rope_bytes, slot * rope, rope, tools::nan_of(*type));
  }
  fill_row(arrays.k, slot * columns, columns, not_a_number);
  fill_row(arrays.k_rope, slot * rope, rope, not_a_number);
}

class LatentUnseenValues : public ::testing::TestWithParam<const char*> {
 protected:
  // `words` with a causal mask whose diagonal begins at key `prefix`.
  void has_the_bits_of_a_clean_cache(const std::string& words, std::int64_t prefix) {
    SCOPED_TRACE(words);
    const LatentArrays clean = latent_arrays(words + " causal=" + std::to_string(prefix));
    LatentArrays dirty = clean;
    std::int64_t unseen = 0;
    std::int64_t number = 0;
    for (const auto& sequence : attention::program::sequences_of(clean.experiment)) {
      for (std::int64_t key = prefix + clean.experiment.query_length; key < sequence.keys; ++key, ++unseen)
        spoil(dirty, slot_of(clean, number, key));
      ++number;
    }
    ASSERT_GT(unseen, 0) << "nothing to show";
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const LatentOutput expected = run_latent(engine_.get(), clean);
    ASSERT_EQ(expected.status, WAVEJIT_OK) << expected.detail;
    EXPECT_EQ(wrong_latent(clean, expected, 3), "");
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    const LatentOutput found = run_latent(engine_.get(), dirty);
    ASSERT_EQ(found.status, WAVEJIT_OK) << found.detail;
    EXPECT_EQ(found.reports, "");
    EXPECT_TRUE(found.fence_intact);
    EXPECT_TRUE(found == expected) << found.kernel_spec;
  }
  bool is(const char* target) const { return std::string(GetParam()) == target; }

  Engine engine_{GetParam()};
};

TEST_P(LatentUnseenValues, BehindTheLastRowsDiagonal) {
  has_the_bits_of_a_clean_cache("bf16 b2 q5 k300 h3 d576/512 lse", 20);
  has_the_bits_of_a_clean_cache("fp16 b2 q33 k257 h4 d576/512 lse apart sink", 0);
  has_the_bits_of_a_clean_cache("bf16 b1 q70 k190 h16 d320/256 softcap=20", 7);
  has_the_bits_of_a_clean_cache("bf16 b1 q3 k100 h128 d512 lse", 61);
}
TEST_P(LatentUnseenValues, OfAPagedCache) {
  has_the_bits_of_a_clean_cache("bf16 b2 q5 k300 h3 d576/512 lse layout=paged:64 k_lengths=300,277", 20);
  has_the_bits_of_a_clean_cache("fp16 b2 q2 k300 h16 d576/512 lse layout=paged:16 k_lengths=300,100", 90);
  has_the_bits_of_a_clean_cache("bf16 b1 q9 k190 h8 d320/256 layout=paged:1", 100);
}
// Runs that no row sees, beside runs that some row sees in part: in one launch and in two.
TEST_P(LatentUnseenValues, OfSeveralRuns) {
  for (const char* launches : {" launches=1", " launches=2"}) {
    has_the_bits_of_a_clean_cache(std::string("bf16 b1 q5 k3100 h16 d576/512 lse splits=3") + launches, 1300);
    has_the_bits_of_a_clean_cache(
        std::string("bf16 b2 q2 k3100 h9 d576/512 lse layout=paged:64 k_lengths=3100,1900 splits=3") + launches, 20);
  }
}
TEST_P(LatentUnseenValues, OfCachesOfBytes) {
  const std::string type = is("gfx942") ? "e4m3_fnuz" : "e4m3";
  const std::string pages = " layout=paged:64 k_lengths=300,277 cache=" + type;
  has_the_bits_of_a_clean_cache("bf16 b2 q5 k300 h3 d576/512 lse" + pages, 20);
  has_the_bits_of_a_clean_cache("bf16 b2 q5 k190 h16 d576/512 lse cache=" + type, 33);
  has_the_bits_of_a_clean_cache("bf16 b2 q5 k300 h16 d576/512 lse row_scales=128" + pages, 20);
  has_the_bits_of_a_clean_cache("bf16 b2 q5 k300 h16 d512 lse row_scales=64" + pages, 20);
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentUnseenValues, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
