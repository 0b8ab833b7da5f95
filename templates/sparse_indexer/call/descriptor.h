// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sparse_indexer bf16 b48 q1 k131072 h64 page=64 top=2048 causal
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention/call/mask_words.h"
#include "templates/sparse_indexer/call/problem.h"

namespace wavejit::sparse_indexer {

// Texts stay as they were said; empty: not said.
struct ProblemDescriptor {
  DataType type = DataType::bf16;  // fp32: scores are given
  std::int64_t batch = 0;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int64_t heads = 0;      // 0 where scores are given
  std::int64_t page_size = 0;  // 0: dense keys
  std::int64_t top_k = 0;      // 0: scores only
  bool key_scales = false;
  bool scores = false;  // beside the list
  attention::MaskWords mask;
  std::vector<std::int64_t> key_lengths;
  std::string seed;

  IndexerShape shape() const;
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

inline constexpr std::string_view grammar =
    "sparse_indexer <bf16|fp16|e4m3|e4m3_fnuz|fp32> b<batch> q<rows> k<keys> [h<index heads>] [page=<keys>] "
    "[key_scales] [top=<keys>] [scores] [causal[=<prefix>]] [window=<left>,<right>] [k_lengths=<n,…>] [seed=<n>]";

}  // namespace wavejit::sparse_indexer
