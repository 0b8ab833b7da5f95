// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/call/call.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <vector>

#include "families/call/refusal.h"
#include "templates/attention/kernel/canon.h"
#include "templates/softmax_lse/call/descriptor.h"

namespace wavejit::softmax_lse {
namespace {

// Guess: two workgroups a compute unit hide a part of each other's waiting.
constexpr std::uint64_t workgroups_per_compute_unit = 2;
// A buffer descriptor spans less than 4 GiB; so far below it nothing that a lane adds to an offset wraps.
constexpr std::uint64_t slice_limit_bytes = (std::uint64_t{1} << 32U) - (std::uint64_t{1} << 16U);

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// A dimension with one element has no stride: whatever the caller left there must not reach address arithmetic.
std::uint64_t stride(const wavejit_tensor& tensor, int dimension, int bytes) {
  return tensor.sizes[dimension] > 1 ? static_cast<std::uint64_t>(tensor.strides[dimension] * bytes) : 0;
}

std::string text_of(float number) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::string(text.data(), end) : std::string();
}

}  // namespace

Geometry geometry_of(const SoftmaxProblem& problem, std::uint64_t largest_row_stride, const targets::Target& target) {
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
                         const targets::Target& target, const families::Toggles& toggles)
    : Call(problem.shape.shape()), call_(call), problem_(problem), target_(target), toggles_(toggles) {
  report = call.report;
  judges_device_memory = (call.flags & WAVEJIT_CHECK_LENGTHS) != 0 && call.key_lengths != nullptr;
}

Result<void> SoftmaxCall::plan(std::span<const families::KernelSpec* const> /*kernels*/, const void* /*memory*/,
                               families::LaunchPlan& plan) {
  const int scores_bytes = element_bytes(problem_.shape.scores);
  const int weights_bytes = element_bytes(problem_.shape.weights);
  arguments_ = {
      .scores = address(call_.scores.data),
      .weights = address(call_.weights.data),
      .lse = address(call_.lse.data),
      .key_lengths = address(call_.key_lengths),
      .scores_batch_stride = stride(call_.scores, 0, scores_bytes),
      .scores_head_stride = stride(call_.scores, 1, scores_bytes),
      .scores_row_stride = static_cast<std::uint32_t>(stride(call_.scores, 2, scores_bytes)),
      .query_length = problem_.query_length,
      .key_length = problem_.key_length,
      .causal_offset = problem_.causal_prefix,
      .bottom_right_mask = problem_.bottom_right ? ~std::uint32_t{0} : 0,
      .window_left = problem_.window_left,
      .window_right = problem_.window_right,
      .scale_log2e = problem_.scale_log2e,
      .rescale_threshold = toggles_.lazy_rescale ? attention::lazy_rescale_threshold : 0,
  };
  if (call_.weights.data != nullptr) {
    arguments_.weights_batch_stride = stride(call_.weights, 0, weights_bytes);
    arguments_.weights_head_stride = stride(call_.weights, 1, weights_bytes);
    arguments_.weights_row_stride = static_cast<std::uint32_t>(stride(call_.weights, 2, weights_bytes));
  }
  if (call_.lse.data != nullptr) {
    arguments_.lse_batch_stride = stride(call_.lse, 0, sizeof(float));
    arguments_.lse_head_stride = stride(call_.lse, 1, sizeof(float));
  }
  const Geometry geometry =
      geometry_of(problem_, std::max(arguments_.scores_row_stride, arguments_.weights_row_stride), target_);
  arguments_.rows = geometry.rows;
  arguments_.tile_shift = geometry.tile_shift;
  plan.add({.grid_x = (problem_.query_length + geometry.rows - 1) / geometry.rows,
            .grid_y = problem_.heads,
            .grid_z = problem_.batch,
            .threads = threads,
            .arguments = &arguments_,
            .argument_bytes = sizeof arguments_});
  return {};
}

SoftmaxCall::WhenMissing SoftmaxCall::when_missing() const {
  if ((call_.flags & WAVEJIT_NO_COMPILE) == 0) return WhenMissing::make_them;
  return (call_.flags & WAVEJIT_COMPILE_BEHIND) == 0 ? WhenMissing::refuse : WhenMissing::refuse_and_make_them_behind;
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
      .causal = (call_.mask & WAVEJIT_MASK_CAUSAL) != 0,
      .causal_prefix = std::nullopt,
      .window = std::nullopt,
      .lse = call_.lse.data != nullptr,
      .key_lengths = {},
      .scale = {},
      .seed = {},
  };
  if ((call_.mask & WAVEJIT_MASK_PREFIX) != 0 && descriptor.causal) descriptor.causal_prefix = call_.causal_prefix;
  if ((call_.mask & WAVEJIT_MASK_WINDOW) != 0) descriptor.window = {call_.window_left, call_.window_right};
  // The scale is no part of a kernel.
  const bool says_scale = call_.scale != 0 || (call_.flags & WAVEJIT_SCALE_IS_ZERO) != 0;
  if (line == Line::whole && says_scale) descriptor.scale = text_of(call_.scale);
  return to_text(descriptor);
}

Result<void> SoftmaxCall::judge(families::DeviceMemory& memory) const {
  using families::refusal::bad;
  using families::refusal::refuse;
  std::vector<std::int32_t> lengths(problem_.batch);
  if (const auto copied = memory.read(lengths.data(), call_.key_lengths, lengths.size() * sizeof(std::int32_t));
      !copied)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "key_lengths",
                      families::refusal::pointer_text(call_.key_lengths) + ", of which " +
                          std::to_string(lengths.size()) + " elements cannot be read (" + copied.error() + ")",
                      "device memory of that many int32"));
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || std::int64_t{lengths[i]} > std::int64_t{problem_.key_length})
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "key_lengths[" + std::to_string(i) + "]", std::to_string(lengths[i]),
                        families::refusal::up_to("0", problem_.key_length) + ", the keys of the scores"));
  return {};
}

}  // namespace wavejit::softmax_lse
