// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/kernel_arguments.h"

#include <algorithm>

#include "templates/attention/call/cache_scales.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

constexpr std::uint64_t lse_element_bytes = 4;

// A tensor without rows has no strides at all.
std::uint64_t stride(const wavejit_tensor& tensor, int dimension, std::uint64_t bytes) {
  return tensor.sizes[1] > 0 ? stride_bytes(tensor, dimension, bytes) : 0;
}

std::uint32_t row_bytes(const wavejit_tensor& tensor, std::uint64_t bytes) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(row_stride(tensor)) * bytes);
}

// The host knows which keys lie behind the last row's diagonal if that begins at a key of its own. Kernels of windows find
// them by themselves (emit/tile.cpp).
std::uint32_t seen_keys(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  const bool shows_more =
      shape.mask != Mask::causal || shape.causal_flags || shape.block_lists || shape.bool_mask || shape.listed;
  if (problem.bottom_right || shows_more) return problem.key_length;
  return attention::keys_to_last_diagonal(problem.key_length, problem.query_length, problem.causal_prefix);
}

}  // namespace

void fill_arguments(Arguments& arguments, const AttentionProblem& problem,
                    const wavejit_attention_forward_arguments& call, const boards::Board& target,
                    const families::Toggles& toggles) {
  const auto bytes = static_cast<std::uint64_t>(bytes_of(problem.shape.stored_query_type()));
  const std::uint64_t o_bytes = static_cast<std::uint64_t>(bytes_of(problem.shape.output_type()));
  arguments.q = address(call.q.data);
  arguments.o = address(call.o.data);
  arguments.q_batch_stride = stride(call.q, 0, bytes);
  arguments.o_batch_stride = stride(call.o, 0, o_bytes);
  arguments.q_head_stride = stride(call.q, 2, bytes);
  arguments.o_head_stride = stride(call.o, 2, o_bytes);
  arguments.q_row_stride = row_bytes(call.q, bytes);
  arguments.o_row_stride = row_bytes(call.o, o_bytes);
  set_keys(arguments, call.k, call.v);
  if (problem.shape.lse) {
    arguments.lse = address(call.lse.data);
    arguments.lse_batch_stride = stride(call.lse, 0, lse_element_bytes);
    arguments.lse_head_stride = stride(call.lse, 1, lse_element_bytes);
  }
  arguments.query_length = problem.query_length;
  arguments.key_length = seen_keys(problem);
  arguments.causal_offset = problem.causal_prefix;
  arguments.bottom_right_mask = problem.bottom_right ? ~std::uint32_t{0} : 0;
  arguments.kv_head_multiplier = kv_head_multiplier(problem.query_heads, problem.kv_heads);
  arguments.scale_log2e = problem.scale_log2e;
  arguments.window_left = problem.window_left;
  arguments.window_right = problem.window_right;
  arguments.sequences.query_starts = address(call.sequences.query_starts);
  arguments.sequences.key_starts =
      address(problem.shape.first_keys ? call.sequences.first_keys : call.sequences.key_starts);
  arguments.sequences.key_lengths = address(call.sequences.key_lengths);
  arguments.sequences.query_rows = static_cast<std::uint32_t>(call.q.sizes[1]);
  arguments.sequences.key_rows = static_cast<std::uint32_t>(call.k.sizes[1]);
  arguments.scores.rescale_threshold = toggles.lazy_rescale ? attention::lazy_rescale_threshold : 0;
  arguments.query_heads = problem.query_heads;
  arguments.kv_heads = problem.kv_heads;
  arguments.group = problem.group();
  const auto dies = static_cast<std::uint32_t>(target.xcds);
  if (toggles.xcd_swizzle.value_or(problem.kv_heads < problem.query_heads) && dies > 1 &&
      problem.query_heads % dies == 0) {
    arguments.heads_per_die = problem.query_heads / dies;
    arguments.die_multiplier = kv_head_multiplier(dies, 1);  // x / dies
  }
  if (call.modifiers.sink.data != nullptr) [[unlikely]]
    arguments.sink = address(call.modifiers.sink.data);
  set_score_arguments(call.modifiers, problem.scale_log2e, arguments.scores);
}

void set_keys(Arguments& arguments, const wavejit_tensor& k, const wavejit_tensor& v) {
  const std::uint64_t k_bytes = element_bytes_of(k);
  const std::uint64_t v_bytes = element_bytes_of(v);
  arguments.k = address(k.data);
  arguments.v = address(v.data);
  arguments.k_batch_stride = stride(k, 0, k_bytes);
  arguments.v_batch_stride = stride(v, 0, v_bytes);
  arguments.k_head_stride = stride(k, 2, k_bytes);
  arguments.v_head_stride = stride(v, 2, v_bytes);
  arguments.k_row_stride = row_bytes(k, k_bytes);
  arguments.v_row_stride = row_bytes(v, v_bytes);
}

void set_units(Arguments& arguments, const wavejit_attention_forward_arguments& call) {
  const bool by_keys = call.pages.page_layout == WAVEJIT_PAGES_VECTORISED_KEYS;
  const std::uint64_t bytes = element_bytes_of(call.k);
  arguments.k_row_stride = static_cast<std::uint32_t>(unit_elements * bytes);
  arguments.v_row_stride =
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(by_keys ? call.v.sizes[3] : 1) * bytes);
}

void begin_at_sequence(PagedArguments& arguments, const AttentionShape& shape, std::uint32_t sequence) {
  Arguments& all = arguments.all;
  const auto step = [&](std::uint64_t& address, std::uint64_t bytes) {
    if (address != 0) address += sequence * bytes;
  };
  constexpr std::uint64_t number = sizeof(std::int32_t);
  step(all.q, all.q_batch_stride);
  step(all.o, all.o_batch_stride);
  step(all.lse, all.lse_batch_stride);
  step(all.scores.bias, all.scores.bias_batch_stride);
  step(all.scores.alibi, all.scores.alibi_batch_stride);
  step(all.sequences.query_starts, number);
  step(all.sequences.key_starts, number);
  step(all.sequences.key_lengths, number);
  if (shape.paged || shape.slots) {
    // The batch stride of k and v is that of pages.
    step(arguments.pages.table_starts, number);
    if (arguments.pages.table_starts == 0) step(arguments.pages.table, arguments.pages.table_row_stride);
    return;
  }
  step(all.k, all.k_batch_stride);
  step(all.v, all.v_batch_stride);
}

CacheScales cache_scales(const wavejit_attention_forward_arguments& call, std::uint32_t first_sequence) {
  return {.k = attention::cache_scale_argument(call.scales.k_scale, first_sequence),
          .v = attention::cache_scale_argument(call.scales.v_scale, first_sequence)};
}

CacheScales token_scales(const wavejit_attention_forward_arguments& call, bool paged, std::uint32_t first_sequence) {
  return cache_scales(call, paged ? 0 : first_sequence);
}

TokenStrides token_strides(const wavejit_attention_forward_arguments& call) {
  const auto of = [](const wavejit_tensor& scale) {
    return static_cast<std::uint32_t>(stride_bytes(scale, 1, sizeof(float)));
  };
  return {.k = of(call.scales.k_scale), .v = of(call.scales.v_scale)};
}

DimStrides dim_strides(const wavejit_attention_forward_arguments& call) {
  const auto of = [](const wavejit_tensor& tensor) {
    const auto elements = static_cast<std::uint64_t>(tensor.sizes[3] > 1 ? tensor.strides[3] : 1);
    return static_cast<std::uint32_t>(elements * element_bytes_of(tensor));
  };
  return {.q = of(call.q), .k = of(call.k), .v = of(call.v), .o = of(call.o)};
}

IntegerScales integer_scales(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem,
                             std::uint32_t first_sequence) {
  const auto scale_of = [&](const wavejit_tensor& tensor) {
    if (tensor.data == nullptr) return RowScale{};
    const auto step = [&](int dimension) {
      return tensor.sizes[dimension] > 1 ? stride_bytes(tensor, dimension, sizeof(float)) : 0;
    };
    return RowScale{.numbers = address(tensor.data) + (first_sequence * step(0)),
                    .batch_stride = step(0),
                    .head_stride = step(2),
                    .row_stride = step(1)};
  };
  return {.q = scale_of(call.scales.q_scale), .k = scale_of(call.scales.k_scale), .scale = problem.scale};
}

attention_combine::Arguments combine_arguments(const Arguments& split, const AttentionShape& shape) {
  // With local chunks it is what the split kernel has in place of a window.
  const bool has_window = has_first_key(shape.mask);
  return {.workspace = split.workspace,
          .o = split.o,
          .o_batch_stride = split.o_batch_stride,
          .o_head_stride = split.o_head_stride,
          .lse = split.lse,
          .lse_batch_stride = split.lse_batch_stride,
          .lse_head_stride = split.lse_head_stride,
          .sink = split.sink,
          .query_starts = split.sequences.query_starts,
          // Where keys stand in pages does not show in how many there are.
          .key_starts = shape.paged ? 0 : split.sequences.key_starts,
          .key_lengths = split.sequences.key_lengths,
          .query_rows = split.sequences.query_rows,
          .query_length = split.query_length,
          .key_rows = split.sequences.key_rows,
          .key_length = split.key_length,
          .causal_offset = split.causal_offset,
          .bottom_right_mask = split.bottom_right_mask,
          .window_left = has_window ? split.window_left : unlimited_window,
          .window_right = has_window                   ? split.window_right
                          : shape.mask == Mask::causal ? 0
                                                       : unlimited_window,
          .query_heads = split.query_heads,
          .o_row_stride = split.o_row_stride,
          // Modified scores, and those of integers, are powers of two already (docs/canonical-arithmetic.md).
          .scale_log2e = shape.scores_are_scaled() ? 1.0F : split.scale_log2e,
          .few_rows = 0,
          .lists = {},
          .kv_head_multiplier = split.kv_head_multiplier,
          .o_dim_stride = 0,
          .scales = {},
          .causal_flags = 0};
}

}  // namespace wavejit::attention_forward
