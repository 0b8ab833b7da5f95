// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_backward bf16 b1 q1024 k1024 h8/2 d128 causal
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention/call/mask_words.h"
#include "templates/attention_backward/call/problem.h"

namespace wavejit::attention_backward {

enum class Layout : std::uint8_t { bshd, bhsd, packed };
inline constexpr families::Names<Layout, 3> layouts = {
    {{Layout::bshd, "bshd"}, {Layout::bhsd, "bhsd"}, {Layout::packed, "packed"}}};

// Texts stay as they were said; empty: not said.
struct ProblemDescriptor {
  DataType dtype = DataType::bf16;
  std::int64_t batch = 1;
  std::int64_t query_length = 1;
  std::int64_t key_length = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  int head_dim_qk = 0;
  int head_dim_v = 0;
  attention::MaskWords mask = {};
  Layout layout = Layout::bshd;
  // One a sequence; empty: all alike. Of packed queries; of packed keys, or how many of dense keys count.
  std::vector<std::int64_t> query_lengths = {};
  std::vector<std::int64_t> key_lengths = {};
  std::string scale = {};
  attention::Extent alibi = attention::Extent::none;
  std::string softcap = {};
  bool gradients_fp32 = false;
  bool output_fp32 = false;
  bool d_lse = false;
  bool delta = false;
  bool d_sink = false;
  std::string seed = {};

  BackwardShape shape() const;
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

}  // namespace wavejit::attention_backward
