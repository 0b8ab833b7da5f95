// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_latent bf16 b64 q1 k8192 h16 d576/512 causal lse layout=paged:64
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/attention/call/mask_words.h"
#include "templates/attention/call/modifier_words.h"
#include "templates/attention_latent/call/problem.h"

namespace wavejit::attention_latent {

// Texts stay as they were said; empty: not said.
struct ProblemDescriptor {
  DataType dtype = DataType::bf16;
  CacheType cache = CacheType::as_queries;
  RowScales row_scales = RowScales::none;
  attention::Extent cache_scales = attention::Extent::none;  // of keys and values: one, or one a sequence
  std::int64_t batch = 1;
  std::int64_t query_length = 1;
  std::int64_t key_length = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim_qk = 0;
  std::int64_t head_dim_v = 0;
  attention::MaskWords mask = {};
  bool lse = false;
  bool apart = false;   // V's columns and those behind them are tensors of their own, of queries and of keys
  bool packed = false;  // queries: layout=packed, or q_lengths of keys in pages
  std::int64_t page_size = 0;
  // One a sequence; empty: all alike.
  std::vector<std::int64_t> query_lengths = {};
  std::vector<std::int64_t> key_lengths = {};
  std::string scale = {};
  std::array<attention::DescribedModifier, attention::modifier_count> modifiers = {};
  std::int64_t splits = 0;        // 0: not said
  std::int64_t launches = 0;      // of several runs: 1 or 2; 0: not said
  std::int64_t top_k = 0;         // keys that each query's list names; 0: no lists
  bool slots = false;             // by their slot in the cache
  bool mixed = false;             // for generators of lists: in no order, with holes and repeats, of own counts
  std::int64_t second_top_k = 0;  // of a second list over a cache of its own
  std::string seed = {};

  const attention::DescribedModifier& of(Modifier one) const { return modifiers[static_cast<std::size_t>(one)]; }
  void add(Modifier one, attention::Extent extent, std::string number = {}) {
    modifiers[static_cast<std::size_t>(one)] = {.there = true, .extent = extent, .number = std::move(number)};
  }
  // Keys of all sequences; 0: the words do not say.
  std::int64_t total_keys() const;
  // With head dims that kernels have.
  LatentProblem problem() const;
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

// What a model has whose line does not say its scale.
float default_scale(const ProblemDescriptor& descriptor);

inline constexpr std::string_view grammar =
    "attention_latent <bf16|fp16> b<batch> q<query length> k<key length> h<heads> d576/512|d512|d320/256 "
    "[causal[=<prefix>]] [lse] [apart] [layout=packed|paged:<n>] [q_lengths=<n,…>] [k_lengths=<n,…>] [scale=<x>] "
    "[sink] [cache=e4m3|e5m2|e4m3_fnuz|e5m2_fnuz] [cache_scales=1|b] [row_scales=128|64] [softcap=<x>] [splits=<n>] "
    "[launches=<1|2>] [top_k=<n>[:slots][:mixed]] [second_top_k=<n>] [seed=<n>]";

}  // namespace wavejit::attention_latent
