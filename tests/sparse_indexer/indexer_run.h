// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of sparse_indexer on a simulated device, from numbers and back. Heads, rows and keys lie apart; between and
// around them inputs are NaN, and outputs a pattern that must survive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/attention_run.h"
#include "support/bits_of.h"
#include "support/byte_floats.h"

namespace wavejit::tests {

struct IndexerCase {
  Storage storage = Storage::bf16;
  const ByteFormat* bytes = nullptr;  // of queries and keys, in place of `storage`
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t keys = 1;
  std::int64_t heads = 0;                       // 0: scores are given
  std::int64_t top = 0;                         // 0: no list
  std::vector<float> queries = {};              // [batch][rows][heads][128], numbers of the type
  std::vector<float> key_vectors = {};          // [batch][keys][128]
  std::vector<float> weights = {};              // [batch][rows][heads]
  std::vector<float> key_scales = {};           // [batch][keys]; empty: none
  std::vector<float> scores = {};               // [batch][rows][keys], where they are given
  int page = 0;                                 // keys of a page; 0: dense
  bool list = false;                            // pages as CSR
  std::vector<std::int32_t> table_starts = {};  // of the list, where they are not what they should be
  bool causal = false;
  std::optional<std::pair<std::int32_t, std::int32_t>> window = std::nullopt;
  std::optional<std::int64_t> prefix = std::nullopt;
  std::vector<std::int32_t> key_lengths = {};
  std::vector<std::int32_t> key_begins = {};
  std::vector<std::int32_t> key_ends = {};
  bool wants_scores = true;  // of a call with queries
  bool wants_values = true;
  std::int64_t workspace_rows = 0;  // the caller's, of this many rows of scores; 0: the engine's
  std::int64_t gap = 8;             // elements between keys, heads and rows of queries; rows of the list

  std::size_t element_bytes() const { return bytes != nullptr ? 1 : 2; }  // of queries and keys
  std::int64_t key_gap() const { return bytes != nullptr ? 2 * gap : gap; }
  std::size_t count() const { return static_cast<std::size_t>(batch * rows); }
  // The keys that a row sees.
  std::pair<std::int64_t, std::int64_t> seen(std::size_t row) const;
};

// Normal numbers, rounded to the type where a type has them.
IndexerCase indexer_case(Storage storage, std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t heads,
                         std::int64_t top, std::uint64_t seed);
IndexerCase given_scores(std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t top,
                         std::uint64_t seed);
// Queries and keys of 8 bits, rounded from normal numbers. Without `bytes` it is the case of the same numbers in bf16.
IndexerCase byte_case(const ByteFormat& format, std::int64_t batch, std::int64_t rows, std::int64_t keys,
                      std::int64_t heads, std::int64_t top, std::uint64_t seed);
// Row `row` by itself: a batch of one.
IndexerCase only_row(const IndexerCase& which, std::size_t row);

struct IndexerOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  std::vector<float> scores;          // [rows of all][keys]; empty: none were written
  std::vector<std::int32_t> indices;  // [rows of all][top]
  std::vector<float> values;          // the same
  std::vector<std::int32_t> counts;   // [rows of all]
  bool fence_intact = true;
  std::string reports;
  std::string kernel_spec;
  // The bits of scores, and the lists.
  bool operator==(const IndexerOutput& other) const {
    return bits_of(scores) == bits_of(other.scores) && indices == other.indices;
  }
};
IndexerOutput run_indexer(wavejit_engine* engine, const IndexerCase& which);

// "" or the first score that is too far from float64, or written where the row sees no key.
std::string wrong_scores(const IndexerCase& which, const IndexerOutput& output);
// "" or the first row whose list is not the sort's of `scores`, [rows of all][keys].
std::string wrong_lists(const IndexerCase& which, const IndexerOutput& output, const std::vector<float>& scores);

}  // namespace wavejit::tests
