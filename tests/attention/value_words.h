// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the descriptor of a row of value_rows.txt says, in plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention/kernel/modifiers.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {

enum class RowLayout : std::uint8_t { bshd, bhsd, packed, paged };

struct ValueWords {
  std::string text;  // canonical, with a space behind the last word
  bool bf16 = false;
  RowLayout layout = RowLayout::bshd;
  int batch = 1;
  int query_length = 1;
  int key_length = 1;
  int query_heads = 1;
  int kv_heads = 1;
  int head_dim_qk = 0;
  int head_dim_v = 0;
  // One a sequence, or empty.
  std::vector<std::int32_t> query_lengths;
  std::vector<std::int32_t> key_lengths;
  std::vector<std::int32_t> first_keys;
  wavejit_masking mask{};
  bool causal_flags = false;
  bool lse = false;
  bool output_fp32 = false;
  std::optional<wavejit_dtype> output_bytes = std::nullopt;
  float scale = 1;
  float softcap = 0;
  attention::Extent alibi = attention::Extent::none;
  attention::Extent bias = attention::Extent::none;
  bool bias_fp32 = false;
  bool bias_by_tile = false;
  attention::Extent bool_mask = attention::Extent::none;
  int list_rows = 0;  // of a block of lists of key blocks; 0: no lists
  int list_keys = 0;
  int list_percent = 0;  // of all blocks
  bool sink = false;
  bool trans_q = false;
  bool trans_k = false;
  bool trans_v = false;
  bool trans_o = false;
  std::int32_t cache_dtype = WAVEJIT_DTYPE_NONE;  // of K and V
  attention::Extent cache_scales = attention::Extent::none;
  int page_size = 0;
  bool page_heads_first = false;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;
  int splits = 0;
  std::string seed;  // empty: not said
};

// `descriptor` has no first word. Throws what the parser says against it.
ValueWords value_words(const std::string& descriptor);

}  // namespace wavejit::tests
