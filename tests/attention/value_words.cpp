// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention/value_words.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "templates/attention/call/data_type.h"
#include "templates/attention_forward/call/descriptor.h"

namespace wavejit::tests {
namespace {

using attention_forward::Layout;
using attention_forward::Modifier;

std::vector<std::int32_t> numbers(const std::vector<std::int64_t>& from) { return {from.begin(), from.end()}; }

float number_in(const std::string& text, float otherwise) { return text.empty() ? otherwise : std::stof(text); }

RowLayout layout_of(Layout layout) {
  switch (layout) {
    case Layout::bhsd:
      return RowLayout::bhsd;
    case Layout::packed:
      return RowLayout::packed;
    case Layout::paged:
      return RowLayout::paged;
    case Layout::bshd:
      break;
  }
  return RowLayout::bshd;
}

}  // namespace

ValueWords value_words(const std::string& descriptor) {
  const auto parsed = attention_forward::parse_descriptor("attention_forward " + descriptor);
  if (!parsed) throw std::runtime_error(parsed.error().detail);
  const attention_forward::AttentionShape& shape = parsed->shape;
  ValueWords words;
  words.text = to_text(*parsed) + ' ';
  words.bf16 = shape.dtype == attention::DataType::bf16;
  words.layout = layout_of(parsed->layout);
  words.batch = static_cast<int>(parsed->batch);
  words.query_length = static_cast<int>(parsed->query_length);
  words.key_length = static_cast<int>(parsed->key_length);
  words.query_heads = static_cast<int>(parsed->query_heads);
  words.kv_heads = static_cast<int>(parsed->kv_heads);
  words.head_dim_qk = shape.head_dim_qk;
  words.head_dim_v = shape.head_dim_v;
  words.query_lengths = numbers(parsed->query_lengths);
  words.key_lengths = numbers(parsed->key_lengths);
  words.first_keys = numbers(parsed->first_keys);
  words.mask = attention::masking_of(parsed->mask);
  words.causal_flags = shape.causal_flags;
  words.lse = shape.lse;
  words.output_fp32 = shape.output_type() == attention::DataType::fp32;
  if (shape.scales_output()) words.output_bytes = static_cast<wavejit_dtype>(attention::told_type(shape.output_type()));
  words.scale = number_in(parsed->scale, static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim_qk))));
  words.softcap = number_in(parsed->of(Modifier::softcap).number, 0);
  words.alibi = parsed->of(Modifier::alibi).extent;
  words.bias = parsed->of(Modifier::bias).extent;
  words.bias_fp32 = shape.bias_fp32;
  words.bias_by_tile = shape.bias_by_tile;
  words.bool_mask = parsed->bool_mask;
  words.list_rows = parsed->lists.rows;
  words.list_keys = parsed->lists.keys;
  words.list_percent = parsed->lists.percent == 0 ? 50 : parsed->lists.percent;
  words.sink = parsed->of(Modifier::sink).there;
  words.trans_q = shape.trans_q;
  words.trans_k = shape.trans_k;
  words.trans_v = shape.trans_v;
  words.trans_o = shape.trans_o;
  words.cache_dtype = attention::told_type(shape.key_type());
  words.cache_scales = parsed->cache_scales;
  words.page_size = static_cast<int>(parsed->page_size);
  words.page_heads_first = parsed->page_heads_first;
  words.page_layout = parsed->values_by_keys ? WAVEJIT_PAGES_VECTORISED_KEYS
                      : shape.vectorised     ? WAVEJIT_PAGES_VECTORISED
                                             : WAVEJIT_PAGES_OF_ROWS;
  words.splits = static_cast<int>(std::max<std::int64_t>(parsed->splits, 0));
  words.seed = parsed->seed;
  return words;
}

}  // namespace wavejit::tests
