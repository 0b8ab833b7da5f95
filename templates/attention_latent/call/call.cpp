// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/call.h"

#include <algorithm>

#include "templates/attention/call/cache_scales.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_latent/call/key_lists.h"
#include "templates/attention_latent/call/scaled_rows.h"

namespace wavejit::attention_latent {
namespace {

using attention::address;
using attention::stride_bytes;

// HIP's limit for y and z of a grid.
constexpr std::uint32_t max_grid_yz = 0xFFFF;

// `skip`: bytes from its first column on.
TensorArgument argument_of(const wavejit_tensor& tensor, std::uint64_t skip = 0) {
  const std::uint64_t bytes = attention::element_bytes_of(tensor);
  // A tensor without rows has no strides at all: whatever the caller left there must not reach address arithmetic.
  const auto stride = [&](int dimension) { return tensor.sizes[1] > 0 ? stride_bytes(tensor, dimension, bytes) : 0; };
  return {.pointer = address(tensor.data) + skip,
          .batch_stride = stride(0),
          .head_stride = stride(2),
          .row_stride = static_cast<std::uint32_t>(static_cast<std::uint64_t>(attention::row_stride(tensor)) * bytes)};
}

attention::Extent scales_of(const wavejit_tensor& scale) {
  if (scale.data == nullptr) return attention::Extent::none;
  return scale.sizes[0] > 1 ? attention::Extent::batch : attention::Extent::one;
}

// Lists name no key that the diagonal hides.
std::uint32_t seen_keys(const LatentProblem& problem) {
  if (!problem.causal || problem.bottom_right || problem.shape.listed) return problem.key_length;
  return attention::keys_to_last_diagonal(problem.key_length, problem.query_length, problem.causal_prefix);
}

}  // namespace

// To the columns behind V's.
std::uint64_t LatentCall::skip_of_keys() const {
  return static_cast<std::uint64_t>(problem_.shape.bytes_before_rope());
}

TensorArgument LatentCall::keys_argument(const wavejit_tensor& tensor) const {
  return argument_of(problem_.shape.has_exponents() ? rows_of_exponents(tensor) : tensor);
}
// What stands behind V's columns. Of rows with exponents those: behind all rows of a page.
TensorArgument LatentCall::behind_keys_argument(const wavejit_tensor& tensor) const {
  if (!problem_.shape.has_exponents()) return argument_of(tensor, skip_of_keys());
  const wavejit_tensor rows = rows_of_exponents(tensor);
  TensorArgument exponents = argument_of(
      rows, static_cast<std::uint64_t>(rows.sizes[1]) * static_cast<std::uint64_t>(problem_.shape.scales_at()));
  exponents.row_stride = exponent_row_bytes;
  return exponents;
}

// Fills in the arguments of `batch` sequences from `first` on.
void LatentCall::fill(const void* memory, std::uint32_t first, std::uint32_t batch) {
  const std::uint64_t skip = static_cast<std::uint64_t>(problem_.shape.dims_v()) * attention::element_bytes_of(call_.q);
  const auto numbers = [&](const std::int32_t* array) {
    return array != nullptr ? address(array) + (std::uint64_t{first} * sizeof(std::int32_t)) : 0;
  };
  arguments_ = {
      .q = argument_of(call_.q),
      .q_rope = call_.q_rope.data != nullptr ? argument_of(call_.q_rope) : argument_of(call_.q, skip),
      .k = keys_argument(call_.k),
      .k_rope = call_.k_rope.data != nullptr ? argument_of(call_.k_rope) : behind_keys_argument(call_.k),
      .o = argument_of(call_.o),
      .lse = address(call_.lse.data),
      .sink = address(call_.modifiers.sink.data),
      .workspace = address(memory),
      .sequences = {.query_starts = numbers(call_.sequences.query_starts),
                    .key_starts = numbers(call_.sequences.key_starts),
                    .key_lengths = numbers(call_.sequences.key_lengths),
                    .query_rows = static_cast<std::uint32_t>(call_.q.sizes[1]),
                    .key_rows = static_cast<std::uint32_t>(call_.k.sizes[1])},
      .scores = {.rescale_threshold = toggles_.lazy_rescale ? attention::lazy_rescale_threshold : 0},
      .pages = {},
      .batch = batch,
      .query_length = problem_.query_length,
      .key_length = seen_keys(problem_),
      .causal_offset = problem_.causal_prefix,
      .bottom_right_mask = problem_.bottom_right ? ~std::uint32_t{0} : 0,
      .heads = problem_.heads,
      .head_multiplier = attention::division_multiplier(problem_.heads),
      .run_chunks = splits_.run_chunks,
      .scale_log2e = problem_.scale_log2e,
      .causal = problem_.causal ? 1U : 0U,
      .list = attention::list_arguments(lists_of(call_), problem_.slots, problem_.causal,
                                        std::uint64_t{first} * problem_.query_length),
      .cache_scales = {},
      .arrivals = address(arrival_counters),
  };
  if (call_.scales.k_scale.data != nullptr) {
    const attention::CacheScale scale = attention::cache_scale_argument(call_.scales.k_scale, first);
    arguments_.cache_scales.of_scores =
        arguments_.cache_scales.of_values = {.numbers = scale.numbers, .batch_stride = scale.batch_stride};
  }
  if (call_.lse.data != nullptr) {
    arguments_.lse_batch_stride = stride_bytes(call_.lse, 0, sizeof(float));
    arguments_.lse_head_stride = stride_bytes(call_.lse, 1, sizeof(float));
    arguments_.lse += first * arguments_.lse_batch_stride;
  }
  static constexpr wavejit_tensor none{};
  if (call_.modifiers.softcap != 0)
    attention::set_score_arguments(Modifier::softcap, none, call_.modifiers.softcap, problem_.scale_log2e,
                                   arguments_.scores);
  for (TensorArgument* tensor : {&arguments_.q, &arguments_.q_rope, &arguments_.o})
    tensor->pointer += first * tensor->batch_stride;
  if (problem_.shape.slots) {
    if (problem_.shape.pages != Pages::dense) arguments_.pages = attention::page_arguments(call_.k, call_.pages);
    return;
  }
  if (problem_.shape.pages == Pages::dense) {
    for (TensorArgument* tensor : {&arguments_.k, &arguments_.k_rope}) tensor->pointer += first * tensor->batch_stride;
    return;
  }
  arguments_.pages = attention::page_arguments(call_.k, call_.pages);
  if (arguments_.pages.table_starts != 0)
    arguments_.pages.table_starts += std::uint64_t{first} * sizeof(std::int32_t);
  else
    arguments_.pages.table += first * arguments_.pages.table_row_stride;
}

// A second list's chunks count behind the first one's.
[[gnu::cold, gnu::noinline]] void LatentCall::fill_second(std::uint32_t first) {
  const std::uint64_t query = std::uint64_t{first} * problem_.query_length;
  const std::uint32_t first_parts = arguments_.list.parts;
  const attention::KeyListArguments list =
      attention::list_arguments(second_list_of(call_), problem_.second_slots, false, query);
  const std::uint32_t parts = first_parts + list.parts;
  second_ = arguments_;
  second_.k = keys_argument(call_.second_k);
  second_.k_rope = behind_keys_argument(call_.second_k);
  if (problem_.shape.pages != Pages::dense) second_.pages.pages = static_cast<std::uint32_t>(call_.second_k.sizes[0]);
  second_.list = list;
  second_.list.first_part = first_parts;
  arguments_.list.parts = second_.list.parts = parts;
  combine_ = arguments_;
  combine_.list.second_counts = list.counts;
  combine_.list.second_length = list.length;
  combine_.list.second_first_part = first_parts;
}

Result<void> LatentCall::plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) {
  const auto& spec = kernels[0]->get<WalkKernel>();
  const std::uint32_t first = first_sequence();
  const std::uint32_t batch = sequences();
  const std::uint32_t rows = problem_.query_length * problem_.heads;
  const auto tile = static_cast<std::uint32_t>(count_of(spec.rows));
  // Tiles of a sequence, or of a listed query, whose rows are its heads.
  const std::uint32_t tiles = ((spec.listed ? problem_.heads : rows) + tile - 1) / tile;
  if (tiles > max_grid_yz) [[unlikely]]
    return fail(WAVEJIT_INVALID_ARGUMENT, "q.sizes[1] (length) = " + std::to_string(problem_.query_length) + " needs " +
                                              std::to_string(tiles) + " tiles of rows; accepted: up to " +
                                              std::to_string(max_grid_yz));
  fill(memory, first, batch);
  // Workgroups go to the dies in turn: tiles of one sequence, which share its keys, to one die. Fewer sequences than
  // dies have all of them, since one die by itself would take as many times as long.
  const auto dies = static_cast<std::uint32_t>(std::max(board_.xcds, 1));
  const std::uint32_t apart = spec.listed ? batch * problem_.query_length : batch;
  plan.add({.grid_x = tiles > 1 && apart >= dies ? (apart + dies - 1) / dies * dies : apart,
            .grid_y = tiles,
            .grid_z = splits_.runs,
            .threads = threads,
            .arguments = &arguments_,
            .argument_bytes = argument_bytes_of(spec.listed, spec.widens(), spec.merged)},
           0);
  if (!splits_.parts() || splits_.merged) return {};
  combine_ = arguments_;
  if (splits_.second_runs != 0) {
    fill_second(first);
    // As the first one's but for the keys.
    families::Launch& second = plan.launches[plan.count];
    second = plan.launches[plan.count - 1];
    second.grid_z = splits_.second_runs;
    second.arguments = &second_;
    ++plan.count;
  }
  // Modified scores are powers of two already (docs/canonical-arithmetic.md).
  if (problem_.shape.modifiers.any()) {
    combine_.scale_log2e = 1;
    combine_.cache_scales.of_scores = {};
  }
  const std::uint32_t tiled = spec.listed ? problem_.heads : rows;
  constexpr std::uint32_t of_tile = wave_rows;
  plan.add({.grid_x = (tiled + of_tile - 1) / of_tile * (spec.listed ? problem_.query_length : 1),
            .grid_y = static_cast<std::uint32_t>(
                combine_waves(kernels[1]->get<CombineKernel>(), static_cast<int>(std::min(tiled, of_tile)))),
            .grid_z = batch,
            .threads = combine_threads,
            .arguments = &combine_,
            .argument_bytes = argument_bytes_of(spec.listed, spec.widens())},
           1);
  return {};
}

std::string LatentCall::descriptor(Line line) const {
  ProblemDescriptor descriptor = {
      .dtype = problem_.shape.dtype,
      .cache = problem_.shape.cache,
      .row_scales = problem_.shape.row_scales,
      .cache_scales = scales_of(call_.scales.k_scale),
      .batch = problem_.batch,
      .query_length = problem_.query_length,
      .key_length = problem_.key_length,
      .heads = problem_.heads,
      .head_dim_qk = problem_.shape.dims_k(),
      .head_dim_v = problem_.shape.dims_v(),
      .mask = attention::words_of(call_.mask),
      .lse = call_.lse.data != nullptr,
      .apart = call_.k_rope.data != nullptr,
      .packed = problem_.packed_queries,
      .page_size = call_.pages.block_table != nullptr || problem_.shape.pages != Pages::dense ? call_.k.sizes[1] : 0,
      .splits = problem_.splits,
      .launches = problem_.launches == attention::Launches::planned ? 0
                  : problem_.launches == attention::Launches::one   ? 1
                                                                    : 2,
      .top_k = problem_.top_k,
      .slots = problem_.shape.slots,
      .second_top_k = problem_.second_top_k};
  if (call_.modifiers.sink.data != nullptr) descriptor.add(Modifier::sink, attention::Extent::none);
  if (call_.modifiers.softcap != 0)
    descriptor.add(Modifier::softcap, attention::Extent::none, attention::text_of(call_.modifiers.softcap));
  if (line == Line::whole) descriptor.scale = attention::text_of(call_.modifiers.scale);  // no part of a kernel
  return to_text(descriptor);
}

}  // namespace wavejit::attention_latent
