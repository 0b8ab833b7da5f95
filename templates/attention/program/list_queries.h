// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may change about a call with lists of keys without showing in a bit of O or LSE, of any attention that has such
// lists: the batch that calls are made of, and the dimensions as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention/program/invariance_rows.h"
#include "tools/invariance/runner.h"
#include "wavejit/simgpu.h"

namespace wavejit::attention::program {

// A batch of queries, each with a list of keys of its own or one for each kv head: q [sequence][query][head][dim], k and
// v [sequence][key][kv head][dim], lists [sequence][query][list][entry]. Where a dense kernel computes the same, the last
// column of queries is 2 and that of keys 0 (list_laboratory.h).
struct ListedQueries {
  std::string words;  // of a line without layout and splits
  std::int64_t sequences = 1;
  std::int64_t queries = 1;  // of a sequence
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t dim = 64;    // of Q and K
  std::int64_t dim_v = 64;  // of V and O
  std::int64_t keys = 1;
  std::int64_t top_k = 1;
  std::int64_t lists = 1;  // of a query: 1, or the kv heads
  tools::HalfType type = tools::HalfType::bf16;
  bool causal = false;
  float scale = 0;  // 0: what calls have that say none
  float softcap = 0;
  std::vector<std::uint16_t> q, k, v;  // no v: values are the first columns of keys
  std::vector<std::int32_t> indices, counts;
  std::vector<std::int32_t> key_lengths;  // empty: all keys count
  std::vector<float> sink;                // or empty
  bool has_dense_walk = true;             // a dense kernel that computes the same
  bool slots_in_pages = false;            // slots may be those of pages

  const std::string& descriptor() const { return words; }
  std::int64_t tokens() const { return sequences * queries; }
  std::int64_t group() const { return query_heads / kv_heads; }
  std::int64_t sequence_of(std::int64_t token) const { return token / queries; }
  std::int64_t keys_of(std::int64_t sequence) const {
    return key_lengths.empty() ? keys : key_lengths[static_cast<std::size_t>(sequence)];
  }
  // Keys that a query sees are those below.
  std::int64_t seen_by(std::int64_t token) const {
    const std::int64_t all = keys_of(sequence_of(token));
    return causal ? all - queries + (token % queries) + 1 : all;
  }
  AnswerShape answer_shape() const { return {.type = type, .heads = query_heads, .dim = dim_v}; }
};

// A query, and heads that share a kv head or all.
struct QueryPart {
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t heads = 0;  // 0: the whole batch
};

struct ListChange {
  std::string text = {};
  std::int64_t page_size = 0;  // 0: dense
  bool slots = false;
  std::int64_t first_entries = 0;  // of slots: what stands behind them is a second list over a second cache
  std::vector<QueryPart> parts = {QueryPart{}};
  std::int32_t splits = 0;
  bool dense_walks = false;
  bool reversed = false;  // lists, without counts
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

using ListDimension = tools::DimensionOf<ListedQueries, ListChange>;
// "key-list-" and "lists of keys: " are put in front of the names and of what is said; of `one_in` pairs one is run.
std::vector<ListDimension> list_dimensions(const std::string& names, const std::string& says, std::uint64_t one_in);

}  // namespace wavejit::attention::program
