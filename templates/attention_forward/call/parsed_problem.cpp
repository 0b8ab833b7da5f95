// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/parsed_problem.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "templates/attention/call/data_type.h"

namespace wavejit::attention_forward {
namespace {

// Texts that the parser has accepted.
template <typename Number>
std::optional<Number> value_of(std::string_view text) {
  Number value{};
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

std::int32_t layout_of(Layout layout) {
  switch (layout) {
    case Layout::bhsd:
      return WAVEJIT_LAYOUT_BHSD;
    case Layout::packed:
      return WAVEJIT_LAYOUT_PACKED;
    case Layout::paged:
      return WAVEJIT_LAYOUT_PAGED;
    case Layout::bshd:
      break;
  }
  return WAVEJIT_LAYOUT_BSHD;
}

}  // namespace

wavejit_problem parsed_problem(const ProblemDescriptor& descriptor, const std::string& text) {
  const AttentionShape& shape = descriptor.shape;
  wavejit_problem problem{};
  problem.size = sizeof problem;
  problem.text = text.c_str();
  problem.dtype = told_type(shape.integers ? shape.dtype : shape.query_type());
  problem.output_dtype = told_type(shape.output_type());
  problem.layout = layout_of(descriptor.layout);
  problem.page_size = descriptor.page_size;
  problem.page_heads_first = descriptor.page_heads_first ? 1 : 0;
  problem.page_layout = descriptor.values_by_keys ? WAVEJIT_PAGES_VECTORISED_KEYS
                        : shape.vectorised        ? WAVEJIT_PAGES_VECTORISED
                                                  : WAVEJIT_PAGES_OF_ROWS;
  problem.batch = descriptor.batch;
  problem.query_length = descriptor.query_length;
  problem.key_length = descriptor.key_length;
  problem.query_heads = descriptor.query_heads;
  problem.kv_heads = descriptor.kv_heads;
  problem.head_dim_qk = shape.head_dim_qk;
  problem.head_dim_v = shape.head_dim_v;
  if (!descriptor.query_lengths.empty()) problem.query_lengths = descriptor.query_lengths.data();
  if (!descriptor.key_lengths.empty()) problem.key_lengths = descriptor.key_lengths.data();
  problem.total_keys = descriptor.total_keys.value_or(0);
  problem.has_first_keys = shape.first_keys ? 1 : 0;
  if (!descriptor.first_keys.empty()) problem.first_keys = descriptor.first_keys.data();
  tell(descriptor.mask, problem);
  problem.lse = shape.lse ? 1 : 0;
  problem.scale = value_of<float>(descriptor.scale)
                      .value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim_qk))));
  for (const ModifierRow& row : modifier_rows) {
    const DescribedModifier& described = descriptor.of(row.modifier);
    if (row.told_number != nullptr) problem.*row.told_number = value_of<float>(described.number).value_or(0.0F);
    if (row.told_extent != nullptr) problem.*row.told_extent = static_cast<std::int32_t>(described.extent);
  }
  problem.bias_dtype = shape.bias_fp32 ? std::int32_t{WAVEJIT_FP32} : told_type(shape.dtype);
  problem.cache_dtype = told_type(shape.key_type());
  problem.cache_scales = static_cast<std::int32_t>(descriptor.cache_scales);
  problem.transposed = (shape.trans_q ? WAVEJIT_TRANSPOSED_Q : 0) | (shape.trans_k ? WAVEJIT_TRANSPOSED_K : 0) |
                       (shape.trans_v ? WAVEJIT_TRANSPOSED_V : 0) | (shape.trans_o ? WAVEJIT_TRANSPOSED_O : 0);
  problem.causal_flags = shape.causal_flags ? 1 : 0;
  problem.list_rows = descriptor.lists.rows;
  problem.list_keys = descriptor.lists.keys;
  problem.list_percent = descriptor.lists.percent;
  problem.lists_alike = descriptor.lists.alike ? 1 : 0;
  problem.splits = descriptor.splits > 0 ? static_cast<std::int32_t>(descriptor.splits) : 0;
  problem.seed = value_of<std::int64_t>(descriptor.seed).value_or(-1);
  problem.inputs = descriptor.inputs.empty() ? nullptr : descriptor.inputs.c_str();
  return problem;
}

}  // namespace wavejit::attention_forward
