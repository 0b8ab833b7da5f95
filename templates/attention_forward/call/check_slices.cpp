// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/described_slices.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention_forward/call/descriptor.h"

namespace wavejit::attention_forward {

Result<void> check_slices(const ProblemDescriptor& descriptor) {
  const AttentionShape& shape = descriptor.shape;
  const AttentionProblem problem = problem_of(descriptor);
  const bool heads_outside = descriptor.layout == Layout::bhsd;
  const bool packed_keys = descriptor.layout == Layout::packed;
  const attention::DescribedTensor queries = {.rows = descriptor.query_length,
                                              .heads = descriptor.query_heads,
                                              .packed = problem.packed_queries,
                                              .heads_outside = heads_outside};
  // The descriptor does not say how many keys a page of slots has; one that is vectorised is a row by itself.
  const std::int64_t key_rows = shape.slots || shape.vectorised ? 0
                                : shape.paged                   ? descriptor.page_size
                                                                : descriptor.key_length;
  const attention::DescribedTensor keys = {.rows = key_rows,
                                           .heads = descriptor.kv_heads,
                                           .packed = packed_keys,
                                           .heads_outside = shape.paged ? descriptor.page_heads_first : heads_outside};
  const auto tensor = [](const char* name, attention::DescribedTensor like, DataType type, int dims, bool scattered) {
    like.name = name;
    like.type = type;
    like.dims = dims;
    like.scattered = scattered;
    return like;
  };
  if (auto slices = attention::check_described_slices(
          {tensor("q", queries, shape.stored_query_type(), shape.head_dim_qk, shape.trans_q),
           tensor("k", keys, shape.key_type(), shape.head_dim_qk, shape.trans_k),
           tensor("v", keys, shape.value_type(), shape.head_dim_v, shape.trans_v),
           tensor("o", queries, shape.output_type(), shape.head_dim_v, shape.trans_o)});
      !slices)
    return slices;
  if (!shape.has(Modifier::bias)) return {};
  const auto rows = static_cast<std::int64_t>(problem.packed_queries ? problem.query_rows : problem.query_length);
  return attention::check_bias_slice(
      rows, attention::padded_bias_row(descriptor.key_length),
      static_cast<std::uint64_t>(bytes_of(shape.bias_fp32 ? DataType::fp32 : shape.dtype)));
}

}  // namespace wavejit::attention_forward
