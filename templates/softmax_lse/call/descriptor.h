// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// softmax_lse fp32 b2 h8 q128 k5000 weights=bf16 causal lse
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention/call/mask_words.h"
#include "templates/softmax_lse/call/problem.h"

namespace wavejit::softmax_lse {

// Texts stay as they were said; empty: not said.
struct ProblemDescriptor {
  DataType scores = DataType::fp32;
  std::optional<DataType> weights = DataType::fp32;  // nothing: none are written
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  bool unaligned = false;  // 16-bit rows begin at any element
  attention::MaskWords mask;
  bool lse = false;
  std::vector<std::int64_t> key_lengths;
  std::string scale;
  std::string seed;

  SoftmaxShape shape() const;
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

inline constexpr std::string_view grammar =
    "softmax_lse <fp32|fp16|bf16> b<batch> h<heads> q<rows> k<keys> [weights=<fp32|fp16|bf16|none>] "
    "[causal[=<prefix>]] [window=<left>,<right>] [lse] [k_lengths=<n,…>] [scale=<x>] [unaligned] [seed=<n>]";

}  // namespace wavejit::softmax_lse
