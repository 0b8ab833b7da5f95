// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/call/call.h"

#include <algorithm>
#include <bit>

#include "templates/attention/call/device_lengths.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/kernel/canon.h"
#include "templates/softmax_lse/call/descriptor.h"

namespace wavejit::softmax_lse {
namespace {

// Guess: two workgroups a compute unit hide a part of each other's waiting.
constexpr std::uint64_t workgroups_per_compute_unit = 2;
// A buffer descriptor spans less than 4 GiB; so far below it nothing that a lane adds to an offset wraps.
constexpr std::uint64_t slice_limit_bytes = (std::uint64_t{1} << 32U) - (std::uint64_t{1} << 16U);

using attention::address;
using attention::stride_bytes;

}  // namespace

Geometry geometry_of(const SoftmaxProblem& problem, std::uint64_t largest_row_stride, const boards::Board& target) {
  const std::uint32_t tiles = (problem.key_length + attention::tile_keys - 1) / attention::tile_keys;
  const std::uint32_t slots = std::clamp<std::uint32_t>(std::bit_ceil(tiles), min_tiles_of_row, tiles_of_workgroup);
  const std::uint64_t all_rows =
      std::uint64_t{problem.batch} * std::uint64_t{problem.heads} * std::uint64_t{problem.query_length};
  const std::uint64_t filled = static_cast<std::uint64_t>(target.compute_units) * workgroups_per_compute_unit;
  std::uint64_t rows = tiles_of_workgroup / slots;
  rows = std::min<std::uint64_t>(rows, problem.query_length);
  rows = std::min(rows, std::max<std::uint64_t>((all_rows + filled - 1) / filled, 1));
  if (largest_row_stride != 0) rows = std::min(rows, slice_limit_bytes / largest_row_stride);
  return {.rows = static_cast<std::uint32_t>(std::max<std::uint64_t>(rows, 1)),
          .tile_shift = static_cast<std::uint32_t>(std::countr_zero(slots))};
}

SoftmaxCall::SoftmaxCall(const wavejit_softmax_lse_arguments& call, const SoftmaxProblem& problem,
                         const boards::Board& board, const families::Toggles& toggles)
    : CallOf(call, problem, board, toggles) {
  judges_device_memory = (call.head.flags & WAVEJIT_CHECK_LENGTHS) != 0 && call.key_lengths != nullptr;
}

Result<void> SoftmaxCall::plan(Kernels /*kernels*/, const void* /*memory*/, families::LaunchPlan& plan) {
  const auto scores_bytes = static_cast<std::uint64_t>(bytes_of(problem_.shape.scores));
  const auto weights_bytes = static_cast<std::uint64_t>(bytes_of(problem_.shape.weights));
  arguments_ = {
      .scores = address(call_.scores.data),
      .weights = address(call_.weights.data),
      .lse = address(call_.lse.data),
      .key_lengths = address(call_.key_lengths),
      .scores_batch_stride = stride_bytes(call_.scores, 0, scores_bytes),
      .scores_head_stride = stride_bytes(call_.scores, 1, scores_bytes),
      .scores_row_stride = static_cast<std::uint32_t>(stride_bytes(call_.scores, 2, scores_bytes)),
      .seen = attention::seen_arguments(problem_.query_length, problem_.key_length, problem_.seen),
      .scale_log2e = problem_.scale_log2e,
      .rescale_threshold = toggles_.lazy_rescale ? attention::lazy_rescale_threshold : 0,
  };
  if (call_.weights.data != nullptr) {
    arguments_.weights_batch_stride = stride_bytes(call_.weights, 0, weights_bytes);
    arguments_.weights_head_stride = stride_bytes(call_.weights, 1, weights_bytes);
    arguments_.weights_row_stride = static_cast<std::uint32_t>(stride_bytes(call_.weights, 2, weights_bytes));
  }
  if (call_.lse.data != nullptr) {
    arguments_.lse_batch_stride = stride_bytes(call_.lse, 0, sizeof(float));
    arguments_.lse_head_stride = stride_bytes(call_.lse, 1, sizeof(float));
  }
  const Geometry geometry =
      geometry_of(problem_, std::max(arguments_.scores_row_stride, arguments_.weights_row_stride), board_);
  arguments_.rows = geometry.rows;
  arguments_.tile_shift = geometry.tile_shift;
  plan.add({.x = (problem_.query_length + geometry.rows - 1) / geometry.rows, .y = problem_.heads, .z = problem_.batch},
           threads, arguments_);
  return {};
}

std::string SoftmaxCall::descriptor(Line line) const {
  ProblemDescriptor descriptor = {
      .scores = problem_.shape.scores,
      .weights = call_.weights.data != nullptr ? std::optional(problem_.shape.weights) : std::nullopt,
      .batch = problem_.batch,
      .heads = problem_.heads,
      .query_length = problem_.query_length,
      .key_length = problem_.key_length,
      .unaligned = problem_.shape.access == Access::elements && problem_.key_length % 2 == 0,
      .mask = attention::words_of(call_.mask),
      .lse = call_.lse.data != nullptr,
      .key_lengths = {},
      .scale = {},
      .seed = {},
  };
  if (!descriptor.mask.causal) descriptor.mask.causal_prefix.reset();
  // The scale is no part of a kernel.
  const bool says_scale = call_.scale != 0 || (call_.head.flags & WAVEJIT_SCALE_IS_ZERO) != 0;
  if (line == Line::whole && says_scale) descriptor.scale = attention::text_of(call_.scale);
  return to_text(descriptor);
}

Result<void> SoftmaxCall::judge(families::DeviceMemory& memory) const {
  return attention::check_key_lengths(memory, call_.key_lengths, problem_.batch, problem_.key_length,
                                      "the keys of the scores");
}

}  // namespace wavejit::softmax_lse
