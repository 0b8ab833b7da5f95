// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/described_experiment.h"

#include <cmath>
#include <utility>

#include "templates/attention/call/data_type.h"
#include "templates/attention_forward/call/descriptor.h"
#include "tools/canonical_line.h"

namespace wavejit::attention_forward::program {
namespace {

using attention::program::ArrayLayout;
using attention::program::Experiment;
using attention::program::number_in;
using tools::HalfType;

void take_memory(const ProblemDescriptor& from, Experiment& to) {
  const AttentionShape& shape = from.shape;
  to.layout = from.layout == Layout::bhsd     ? ArrayLayout::bhsd
              : from.layout == Layout::packed ? ArrayLayout::packed
              : from.layout == Layout::paged  ? ArrayLayout::paged
                                              : ArrayLayout::bshd;
  to.page_size = from.page_size;
  to.page_heads_first = from.page_heads_first;
  to.page_layout = from.values_by_keys ? WAVEJIT_PAGES_VECTORISED_KEYS
                   : shape.vectorised  ? WAVEJIT_PAGES_VECTORISED
                                       : WAVEJIT_PAGES_OF_ROWS;
  to.trans_q = shape.trans_q;
  to.trans_k = shape.trans_k;
  to.trans_v = shape.trans_v;
  to.trans_o = shape.trans_o;
}

void take_types(const ProblemDescriptor& from, Experiment& to) {
  const AttentionShape& shape = from.shape;
  to.byte_queries = shape.narrow_queries;
  const DataType type = to.byte_queries ? shape.output_type() : shape.integers ? shape.dtype : shape.query_type();
  to.type = type == DataType::bf16 ? HalfType::bf16 : HalfType::fp16;
  to.output_fp32 = shape.output == OutputType::fp32;
  to.query_fp32 = shape.query_fp32;
  to.bias_fp32 = shape.bias_fp32;
  to.integers = shape.integers;
  to.half_scores = shape.half_scores;
  const std::int32_t keys = attention::told_type(shape.key_type());
  to.cache_dtype = keys >= WAVEJIT_E4M3 && !to.integers ? keys : std::int32_t{WAVEJIT_DTYPE_NONE};
  to.cache_scales = from.cache_scales;
}

Experiment experiment_of(const ProblemDescriptor& from, std::string text) {
  Experiment to = attention::program::experiment_with(from, std::move(text));
  take_types(from, to);
  take_memory(from, to);
  to.total_keys = from.total_keys.value_or(0);
  to.first_keys = from.first_keys;
  if (from.shape.first_keys && to.first_keys.empty()) to.first_keys = attention::program::drawn_first_keys(to);
  to.query_heads = from.query_heads;
  to.kv_heads = from.kv_heads;
  to.head_dim_qk = from.shape.head_dim_qk;
  to.head_dim_v = from.shape.head_dim_v;
  to.causal_flags = from.shape.causal_flags;
  to.lse = from.shape.lse;
  to.scale = number_in(from.scale, static_cast<float>(1 / std::sqrt(static_cast<double>(from.shape.head_dim_qk))));
  to.bias_by_tile = to.text.contains(" bias_by_tile");
  to.bool_mask = from.bool_mask;
  to.list_rows = from.lists.rows;
  to.list_keys = from.lists.keys;
  to.list_percent = from.lists.percent;
  to.hints = from.hints;
  to.splits = from.splits > 0 ? static_cast<std::int32_t>(from.splits) : 0;
  if (!from.inputs.empty()) to.inputs = from.inputs;
  return to;
}

}  // namespace

tools::Result<Experiment> parse_experiment(const std::string& descriptor) {
  std::string text;
  const auto parsed = tools::parsed_line(descriptor, text, parse_descriptor);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->shape.scales_output())
    return tools::failed(tools::ExitCode::unsupported,
                         "o=" + std::string(to_text(parsed->shape.output_type())) +
                             ": this command makes no O in 8 bits, whose scale no word says; accepted: o=fp32, no o=");
  return attention::program::with_known_inputs(experiment_of(with_lengths(*parsed), std::move(text)));
}

}  // namespace wavejit::attention_forward::program
