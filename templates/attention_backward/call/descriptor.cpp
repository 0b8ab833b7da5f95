// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/call/descriptor.h"

#include "templates/attention/call/mask.h"

namespace wavejit::attention_backward {

BackwardShape ProblemDescriptor::shape() const {
  BackwardShape shape = {asked, runs_of(query_length, query_heads / kv_heads)};
  shape.d_sink = d_sink;
  shape.d_bias = d_bias || d_bias_fp32;
  shape.d_bias_fp32 = d_bias_fp32;
  shape.mask = attention::choose_mask(mask.causal, mask.window.has_value(), mask.left(), mask.right()).mask;
  shape.many_queries = are_many(batch, query_heads, query_length, shape.mask);
  shape.many_keys = are_many(batch, kv_heads, key_length, shape.mask);
  for (const attention::ModifierRow& row : attention::modifier_rows)
    if (row.in_code && of(row.modifier).there) shape.modifiers.add(row.modifier);
  shape.few_keys = may_share(shape) && are_few(batch, kv_heads, key_length);
  return shape;
}

}  // namespace wavejit::attention_backward
