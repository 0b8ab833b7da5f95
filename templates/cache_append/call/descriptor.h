// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append bf16 b64 q1 h8 d128 page=16 queries=32 rotary=halves angles=bf16
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "templates/cache_append/call/problem.h"

namespace wavejit::cache_append {

enum class PageOrder : std::uint8_t { nhd, hnd, vectorised, vectorised_keys };
inline constexpr families::Names<PageOrder, 4> page_orders = {{{PageOrder::nhd, "nhd"},
                                                               {PageOrder::hnd, "hnd"},
                                                               {PageOrder::vectorised, "vectorised"},
                                                               {PageOrder::vectorised_keys, "vectorised_keys"}}};

struct ProblemDescriptor : AskedWords {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;        // of K and V
  std::int64_t query_heads = 0;  // 0: Q is not turned
  std::int64_t key_dims = 0;
  std::int64_t value_dims = 0;  // 0: there is no V
  std::int64_t page_size = 0;
  PageOrder pages = PageOrder::nhd;
  std::int64_t rotary_dims = 0;
  bool head_scales = false;  // of a cache of 8 bits, where tokens have none of their own
  bool holes = false;        // of the tools: some tokens have no slot
  std::string seed;          // as it was said; empty: it was not

  AppendShape shape() const { return {static_cast<const AskedWords&>(*this)}; }
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

inline constexpr std::string_view grammar =
    "cache_append <fp16|bf16> b<batch> q<tokens> h<kv heads> d<dims>[/<dims of V>] "
    "page=<keys>[:nhd|hnd|vectorised|vectorised_keys] [queries=<heads>] [rotary=<halves|interleaved>[:<dims>]] "
    "[angles=<bf16|fp16|fp32|base>] [no_values] [elements=<source,keys,values,queries>] "
    "[cache=<e4m3|e5m2|e4m3_fnuz|e5m2_fnuz|i8>] [cache_scales=<h|token>] [row_scales=<128|64>] [holes] [seed=<n>]";

}  // namespace wavejit::cache_append
