// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/call/descriptor.h"

#include "templates/attention/call/mask.h"

namespace wavejit::attention_backward {

BackwardShape ProblemDescriptor::shape() const {
  BackwardShape shape = {
      {.dtype = dtype,
       .mask = attention::choose_mask(mask.causal, mask.window.has_value(), mask.left(), mask.right()).mask,
       .gradients_fp32 = gradients_fp32,
       .output_fp32 = output_fp32},
      head_dim_qk,
      head_dim_v,
      runs_of(query_length, query_heads / kv_heads)};
  shape.d_sink = d_sink;
  shape.many_queries = are_many(batch, query_heads, query_length, shape.mask);
  shape.many_keys = are_many(batch, kv_heads, key_length, shape.mask);
  if (!softcap.empty()) shape.modifiers.add(Modifier::softcap);
  if (alibi != attention::Extent::none) shape.modifiers.add(Modifier::alibi);
  return shape;
}

std::string to_text(const ProblemDescriptor& descriptor) {
  std::string text(family_name);
  const auto word = [&](std::string_view name, std::string_view value = {}) {
    text += ' ';
    text += name;
    text += value;
  };
  const auto pair = [](std::int64_t first, std::int64_t second) {
    return std::to_string(first) + (second == first ? "" : "/" + std::to_string(second));
  };
  word(attention::to_text(descriptor.dtype));
  word("b", std::to_string(descriptor.batch));
  word("q", std::to_string(descriptor.query_length));
  word("k", std::to_string(descriptor.key_length));
  word("h", pair(descriptor.query_heads, descriptor.kv_heads));
  word("d", pair(descriptor.head_dim_qk, descriptor.head_dim_v));
  text += attention::to_text(descriptor.mask);
  if (descriptor.layout != Layout::bshd) word("layout=", families::name_in(layouts, descriptor.layout));
  if (!descriptor.query_lengths.empty()) word("q_lengths=", attention::to_text(descriptor.query_lengths));
  if (!descriptor.key_lengths.empty()) word("k_lengths=", attention::to_text(descriptor.key_lengths));
  if (!descriptor.scale.empty()) word("scale=", descriptor.scale);
  for (const attention::ExtentName& each : attention::alibi_extents)
    if (each.extent == descriptor.alibi) word("alibi=", each.name);
  if (!descriptor.softcap.empty()) word("softcap=", descriptor.softcap);
  if (descriptor.d_lse) word("d_lse");
  if (descriptor.d_sink) word("d_sink");
  if (descriptor.delta) word("delta");
  if (descriptor.output_fp32) word("o=fp32");
  if (descriptor.gradients_fp32) word("gradients=fp32");
  if (!descriptor.seed.empty()) word("seed=", descriptor.seed);
  return text;
}

}  // namespace wavejit::attention_backward
