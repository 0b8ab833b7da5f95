// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/call/call.h"

#include <algorithm>

#include "templates/attention/call/data_type.h"
#include "templates/attention/call/mask_words.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

using attention::address;
using attention::row_stride;
using attention::stride_bytes;
using attention::text_of;

// A tensor without rows has no strides at all: whatever the caller left there must not reach address arithmetic.
TensorArgument argument_of(const wavejit_tensor& tensor) {
  const std::uint64_t bytes = attention::element_bytes_of(tensor);
  const auto stride = [&](int dimension) { return tensor.sizes[1] > 0 ? stride_bytes(tensor, dimension, bytes) : 0; };
  return {.pointer = address(tensor.data),
          .batch_stride = stride(0),
          .head_stride = stride(2),
          .row_stride = static_cast<std::uint32_t>(static_cast<std::uint64_t>(row_stride(tensor)) * bytes)};
}

// [batch, heads, rows, 1]
RowNumbersArgument numbers_of(const wavejit_tensor& tensor) {
  return {.pointer = address(tensor.data),
          .batch_stride = stride_bytes(tensor, 0, sizeof(float)),
          .head_stride = stride_bytes(tensor, 1, sizeof(float))};
}

// [batch, heads, 1, 1]; none where the call has none.
HeadNumbersArgument head_numbers_of(const wavejit_tensor& tensor) {
  if (tensor.data == nullptr) return {};
  return {.pointer = address(tensor.data),
          .batch_stride = stride_bytes(tensor, 0, sizeof(float)),
          .head_stride = stride_bytes(tensor, 1, sizeof(float))};
}

// What shares a bias, a workgroup adds up; packed rows share none.
BiasGradientArgument bias_gradient_of(const wavejit_attention_backward_arguments& call,
                                      const BackwardProblem& problem) {
  const wavejit_tensor& of = call.d_bias;
  if (of.data == nullptr) return {};
  const std::uint64_t bytes = attention::element_bytes_of(of);
  const bool shares_batch = call.sequences.query_starts == nullptr && of.sizes[0] == 1;
  return {
      .pointer = address(of.data),
      .batch_stride = stride_bytes(of, 0, bytes),
      .head_stride = stride_bytes(of, 1, bytes),
      .row_stride = static_cast<std::uint32_t>(static_cast<std::uint64_t>(attention::bias_row_elements(of)) * bytes),
      .batches = shares_batch ? problem.batch : 1,
      .heads = of.sizes[1] == 1 ? problem.query_heads : 1};
}

RowNumbersArgument optional_numbers_of(const wavejit_tensor& tensor) {
  return tensor.data != nullptr ? numbers_of(tensor) : RowNumbersArgument{};
}

// How the tensors lie, as the nearest word that a descriptor has; strides are told by none exactly.
Layout layout_of(const wavejit_attention_backward_arguments& call) {
  if (call.sequences.query_starts != nullptr || call.sequences.key_starts != nullptr) return Layout::packed;
  const bool heads_outside = call.q.sizes[2] > 1 && call.q.sizes[1] > 1 && call.q.strides[2] > call.q.strides[1];
  return heads_outside ? Layout::bhsd : Layout::bshd;
}

}  // namespace

BackwardCall::BackwardCall(const wavejit_attention_backward_arguments& call, const BackwardProblem& problem,
                           const boards::Board& board, const families::Toggles& toggles)
    : CallOf(call, problem, board, toggles) {
  workspace_bytes = problem.workspace_bytes();
  workspace = call.split.workspace;
}

Result<void> BackwardCall::check_workspace() const {
  return attention_backward::check_workspace(call_, problem_.batch, workspace_bytes);
}

Result<void> BackwardCall::plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) {
  const std::uint64_t rows = static_cast<std::uint64_t>(call_.q.sizes[1]) * sizeof(float);
  const auto all_bits = [](std::uint32_t bits, std::uint32_t bit) {
    return (bits & bit) != 0 ? ~std::uint32_t{0} : std::uint32_t{0};
  };
  const auto factor = [&](std::uint32_t bit) { return (call_.sums_behind & bit) != 0 ? 1.0F : problem_.scale; };
  arguments_ = {
      .q = argument_of(call_.q),
      .k = argument_of(call_.k),
      .v = argument_of(call_.v),
      .o = call_.delta.data == nullptr ? argument_of(call_.o) : TensorArgument{},
      .d_o = argument_of(call_.d_o),
      .dq = argument_of(call_.dq),
      .dk = argument_of(call_.dk),
      .dv = argument_of(call_.dv),
      .lse = numbers_of(call_.lse),
      .d_lse = optional_numbers_of(call_.d_lse),
      .delta = {.pointer = address(memory),
                .batch_stride = call_.q.sizes[0] > 1 ? rows * problem_.query_heads : 0,
                .head_stride = rows},
      .parts = {.pointer = address(memory) + problem_.parts_at(),
                .batch_stride = parts_bytes_of_head(problem_) * problem_.kv_heads,
                .head_stride = parts_bytes_of_head(problem_)},
      .seen = attention::seen_arguments(problem_.query_length, problem_.key_length, problem_.seen),
      .kv_head_multiplier = attention::kv_head_multiplier(problem_.query_heads, problem_.kv_heads),
      .group = problem_.group(),
      .scale_log2e = problem_.scale_log2e,
      .dq_factor = factor(WAVEJIT_SUMS_OF_DQ),
      .dk_factor = factor(WAVEJIT_SUMS_OF_DK_DV),
      .run_tiles = run_tiles_of(problem_.group()),
      .sequences = {.query_starts = address(call_.sequences.query_starts),
                    .key_starts = address(call_.sequences.key_starts),
                    .key_lengths = address(call_.sequences.key_lengths),
                    .query_rows = static_cast<std::uint32_t>(call_.q.sizes[1]),
                    .key_rows = static_cast<std::uint32_t>(call_.k.sizes[1])},
      .scores = {},
      .dq_before = all_bits(call_.sums_before, WAVEJIT_SUMS_OF_DQ),
      .dk_dv_before = all_bits(call_.sums_before, WAVEJIT_SUMS_OF_DK_DV),
      .given_delta = optional_numbers_of(call_.delta),
      .sink = head_numbers_of(call_.modifiers.sink),
      .d_sink = head_numbers_of(call_.d_sink),
      .d_bias = bias_gradient_of(call_, problem_),
  };
  attention::set_score_arguments(call_.modifiers, problem_.scale_log2e, arguments_.scores);
  const auto tiles = [](std::uint32_t rows_of_all, int of_tile) {
    return std::max<std::uint32_t>(
        (rows_of_all + static_cast<std::uint32_t>(of_tile) - 1) / static_cast<std::uint32_t>(of_tile), 1);
  };
  plan.add({.x = problem_.query_heads,
            .y = tiles(problem_.query_length, tile_queries_of(kernels[0]->get<QueryKernel>())),
            .z = problem_.batch},
           threads, arguments_);
  plan.add({.x = problem_.kv_heads,
            .y = tiles(problem_.key_length, tile_keys_of(kernels[1]->get<KeyKernel>())),
            .z = problem_.batch},
           threads, arguments_);
  if (problem_.shape.d_sink) plan.add({.x = problem_.query_heads, .z = problem_.batch}, threads, arguments_);
  if (problem_.shape.d_bias) {
    const auto& of = kernels[problem_.shape.d_sink ? 3 : 2]->get<BiasKernel>();
    plan.add({.x = tiles(problem_.query_length, tile_queries_of(of)) * tiles(problem_.key_length, attention::tile_keys),
              .y = problem_.query_heads / arguments_.d_bias.heads,
              .z = problem_.batch / arguments_.d_bias.batches},
             threads, arguments_);
  }
  return {};
}

families::WorkspaceWords BackwardCall::workspace_words() const {
  const std::string parts =
      problem_.parts_bytes == 0 ? "" : " and " + std::to_string(problem_.parts_bytes) + " bytes of sums of runs";
  return {.reason = "delta of " + std::to_string(problem_.delta_bytes / sizeof(float)) + " rows" + parts,
          .captured = "a backward call keeps one number a row of q and head, and sums of long sequences",
          .instead = "a workspace of wavejit_call_workspace bytes"};
}

std::string BackwardCall::descriptor(Line line) const {
  ProblemDescriptor descriptor = {.asked = {.dtype = problem_.shape.dtype,
                                            .head_dim_qk = problem_.shape.head_dim_qk,
                                            .head_dim_v = problem_.shape.head_dim_v,
                                            .gradients_fp32 = problem_.shape.gradients_fp32,
                                            .bias_fp32 = problem_.shape.bias_fp32,
                                            .output_fp32 = problem_.shape.output_fp32},
                                  .batch = problem_.batch,
                                  .query_length = problem_.query_length,
                                  .key_length = problem_.key_length,
                                  .query_heads = problem_.query_heads,
                                  .kv_heads = problem_.kv_heads,
                                  .mask = attention::words_of(call_.mask),
                                  .layout = layout_of(call_),
                                  .d_lse = call_.d_lse.data != nullptr,
                                  .delta = call_.delta.data != nullptr,
                                  .d_sink = problem_.shape.d_sink,
                                  .d_bias = problem_.shape.d_bias && !problem_.shape.d_bias_fp32,
                                  .d_bias_fp32 = problem_.shape.d_bias_fp32};
  if (call_.modifiers.bias.data != nullptr) {
    const bool by_batch = call_.sequences.query_starts == nullptr && call_.modifiers.bias.sizes[0] > 1;
    const bool by_head = call_.modifiers.bias.sizes[1] > 1;
    using attention::Extent;
    descriptor.add(Modifier::bias, by_batch ? (by_head ? Extent::batch_and_head : Extent::batch)
                                            : (by_head ? Extent::head : Extent::one));
  }
  if (call_.modifiers.alibi.data != nullptr)
    descriptor.add(Modifier::alibi,
                   call_.modifiers.alibi.sizes[0] > 1 ? attention::Extent::batch_and_head : attention::Extent::head);
  if (call_.modifiers.softcap != 0)
    descriptor.add(Modifier::softcap, attention::Extent::none, text_of(call_.modifiers.softcap));
  // The scale is no part of a kernel.
  const bool says_scale = call_.modifiers.scale != 0 || (call_.head.flags & WAVEJIT_SCALE_IS_ZERO) != 0;
  if (line == Line::whole && says_scale) descriptor.scale = text_of(call_.modifiers.scale);
  // Nor are sums of other calls.
  if (line == Line::whole) {
    descriptor.sums_before = call_.sums_before;
    descriptor.sums_behind = call_.sums_behind;
  }
  return to_text(descriptor);
}

}  // namespace wavejit::attention_backward
