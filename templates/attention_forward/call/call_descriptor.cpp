// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/call_descriptor.h"

#include <algorithm>
#include <string>

#include "templates/attention/call/hints.h"
#include "templates/attention/kernel/modifiers.h"

namespace wavejit::attention_forward {

namespace {

// The extent of this tensor, among those that the modifier's word may have.
Extent extent_of(const ModifierRow& row, const wavejit_tensor& tensor) {
  const bool by_batch = tensor.sizes[0] > 1;
  const bool by_head = tensor.sizes[1] > 1;
  const Extent extent = by_batch && by_head ? Extent::batch_and_head
                        : by_batch          ? Extent::batch
                        : by_head           ? Extent::head
                                            : Extent::one;
  const auto known = [&](Extent one) {
    return std::ranges::any_of(row.extents, [&](const auto& each) { return each.extent == one; });
  };
  if (row.extents.empty()) return Extent::one;
  if (known(extent)) return extent;
  // Slopes are always one a head.
  return by_batch ? Extent::batch_and_head : Extent::head;
}

}  // namespace

[[gnu::cold]] ProblemDescriptor describe_call(const AttentionProblem& problem,
                                              const wavejit_attention_forward_arguments& call) {
  const bool heads_outside = call.q.sizes[1] > 1 && call.q.sizes[2] > 1 && call.q.strides[2] > call.q.strides[1];
  ProblemDescriptor descriptor;
  descriptor.shape = problem.shape;
  descriptor.batch = problem.batch;
  descriptor.query_length = problem.query_length;
  descriptor.key_length = problem.key_length;
  descriptor.query_heads = problem.query_heads;
  descriptor.kv_heads = problem.kv_heads;
  descriptor.layout = heads_outside ? Layout::bhsd : Layout::bshd;
  if (call.modifiers.scale != 0 || (call.head.flags & WAVEJIT_SCALE_IS_ZERO) != 0)
    descriptor.scale = text_of(call.modifiers.scale);
  if (call.sequences.query_starts != nullptr && call.sequences.key_starts != nullptr)
    descriptor.layout = Layout::packed;
  if (problem.shape.paged) {
    descriptor.layout = Layout::paged;
    descriptor.page_size = call.k.sizes[1];
    descriptor.page_heads_first =
        !problem.shape.vectorised && call.k.sizes[2] > 1 && call.k.strides[2] > call.k.strides[1];
    descriptor.values_by_keys = call.pages.page_layout == WAVEJIT_PAGES_VECTORISED_KEYS;
  }
  descriptor.mask = words_of(call.mask);
  for (const ModifierRow& row : modifier_rows) {
    if (!given(row, call.modifiers)) continue;
    if (row.number != nullptr) {
      descriptor.add(row.modifier, Extent::none, text_of(call.modifiers.*row.number));
    } else {
      descriptor.add(row.modifier, extent_of(row, call.modifiers.*row.tensor));
    }
  }
  for (const wavejit_tensor* scale : {&call.scales.q_scale, &call.scales.k_scale, &call.scales.v_scale}) {
    // Those of integers are arguments alone, but for cache_scales=token.
    if (scale->data == nullptr || problem.shape.integers || problem.shape.token_scales) continue;
    const bool by_batch = scale->sizes[0] > 1 || descriptor.cache_scales == Extent::batch ||
                          descriptor.cache_scales == Extent::batch_and_head;
    const bool by_head = scale->sizes[2] > 1 || descriptor.cache_scales == Extent::head ||
                         descriptor.cache_scales == Extent::batch_and_head;
    descriptor.cache_scales = by_batch && by_head ? Extent::batch_and_head
                              : by_batch          ? Extent::batch
                              : by_head           ? Extent::head
                                                  : Extent::one;
  }
  if (problem.shape.token_scales) descriptor.cache_scales = Extent::token_and_head;
  if (problem.shape.bool_mask) {
    const bool by_batch = call.modifiers.bool_mask.sizes[0] > 1;
    const bool by_head = call.modifiers.bool_mask.sizes[1] > 1;
    descriptor.bool_mask = by_batch && by_head ? Extent::batch_and_head
                           : by_batch          ? Extent::batch
                           : by_head           ? Extent::head
                                               : Extent::one;
  } else if (problem.shape.block_lists && !problem.shape.bias_by_tile)
    descriptor.lists = {.rows = call.blocks.list_rows, .keys = call.blocks.list_keys};
  descriptor.hints = call.head.flags & attention::all_hints;
  if (problem.shape.listed) {
    descriptor.top_k = problem.top_k;
    descriptor.list_each_head = problem.key_list_heads > 1;
    descriptor.second_top_k = problem.second_top_k;
  }
  if (call.sequences.max_total_keys > 0) descriptor.total_keys = call.sequences.max_total_keys;
  if (problem.splits > 0) descriptor.splits = problem.splits;
  if (problem.launches != attention::Launches::planned)
    descriptor.launches = problem.launches == attention::Launches::one ? 1 : 2;
  return descriptor;
}

}  // namespace wavejit::attention_forward
