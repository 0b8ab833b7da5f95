// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/call/call.h"

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

#include "templates/attention/call/data_type.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention_merge/call/descriptor.h"

namespace wavejit::attention_merge {
namespace {

using attention::address;
using attention::element_bytes_of;
using attention::stride_bytes;

std::uint32_t dword(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

Stack stack_of(const wavejit_tensor& o, const wavejit_tensor& lse) {
  const std::uint64_t bytes = element_bytes_of(o);
  const auto heads = static_cast<std::uint64_t>(o.sizes[2]);
  Stack stack = {.o = address(o.data),
                 .o_batch_stride = stride_bytes(o, 0, bytes),
                 .o_token_stride = stride_bytes(o, 1, bytes),
                 .o_head_stride = dword(stride_bytes(o, 2, bytes)),
                 .parts = 1};
  stack.o_row_bytes = dword(((heads - 1) * stack.o_head_stride) + (static_cast<std::uint64_t>(o.sizes[3]) * bytes));
  if (lse.data == nullptr) return stack;
  stack.lse = address(lse.data);
  stack.lse_batch_stride = stride_bytes(lse, 0, sizeof(float));
  stack.lse_head_stride = dword(stride_bytes(lse, 1, sizeof(float)));
  stack.lse_token_stride = stride_bytes(lse, 2, sizeof(float));
  stack.lse_row_bytes = dword(((heads - 1) * stack.lse_head_stride) + sizeof(float));
  return stack;
}

}  // namespace

Result<void> MergeCall::plan(Kernels /*kernels*/, const void* /*memory*/, families::LaunchPlan& plan) {
  arguments_.result = stack_of(call_.o, call_.lse);
  if (is_narrow(problem_.shape.out)) {
    arguments_.o_scale = address(call_.output_scale.o_scale);
    arguments_.result.o_scale = call_.output_scale.o_scale_value;
  }
  arguments_.stacks = static_cast<std::uint32_t>(call_.part_count);
  for (std::size_t i = 0; i < arguments_.stacks; ++i) {
    const wavejit_attention_part& part = call_.parts[i];
    Stack& stack = arguments_.parts[i];
    stack = stack_of(part.o, part.lse);
    if (part.count <= 1) continue;
    stack.parts = static_cast<std::uint32_t>(part.count);
    stack.o_part_stride = static_cast<std::uint64_t>(part.o_stride) * element_bytes_of(part.o);
    stack.lse_part_stride = static_cast<std::uint64_t>(part.lse_stride) * sizeof(float);
  }
  const auto lanes_of_wave = static_cast<std::uint32_t>(board_.wave_size);
  arguments_.heads = problem_.heads;
  arguments_.pieces = problem_.dims / dims_of_lane;
  const std::uint32_t lanes = std::bit_ceil(arguments_.pieces);
  arguments_.lane_shift = dword(static_cast<std::uint64_t>(std::countr_zero(lanes)));
  arguments_.heads_of_wave = lanes_of_wave / lanes;
  arguments_.tokens = problem_.tokens;
  std::uint32_t batch = problem_.batch;
  merge_batches(batch);
  const std::uint32_t tokens_of_workgroup = threads / lanes_of_wave;
  plan.add({.x = (arguments_.tokens + tokens_of_workgroup - 1) / tokens_of_workgroup,
            .y = batch,
            .z = (problem_.heads + arguments_.heads_of_wave - 1) / arguments_.heads_of_wave},
           threads, arguments_);
  return {};
}

// Batches whose tokens stand one behind the other everywhere are one: a step of decoding has a token a batch.
void MergeCall::merge_batches(std::uint32_t& batch) {
  if (batch == 1) return;
  const std::uint64_t tokens = arguments_.tokens;
  const auto follows = [&](const Stack& stack) {
    return tokens == 1 || (stack.o_batch_stride == tokens * stack.o_token_stride &&
                           stack.lse_batch_stride == tokens * stack.lse_token_stride);
  };
  const std::span<Stack> parts = std::span(arguments_.parts).first(arguments_.stacks);
  if (!follows(arguments_.result) || !std::ranges::all_of(parts, follows)) return;
  const auto as_tokens = [&](Stack& stack) {
    if (tokens > 1) return;
    stack.o_token_stride = stack.o_batch_stride;
    stack.lse_token_stride = stack.lse_batch_stride;
  };
  as_tokens(arguments_.result);
  std::ranges::for_each(parts, as_tokens);
  arguments_.tokens *= batch;
  batch = 1;
}

std::string MergeCall::descriptor(Line /*line*/) const {
  ProblemDescriptor descriptor;
  static_cast<AskedWords&>(descriptor) = problem_.shape;
  descriptor.batch = problem_.batch;
  descriptor.tokens = problem_.tokens;
  descriptor.heads = problem_.heads;
  descriptor.dims = problem_.dims;
  // Several stacks are a line of one: no word says how many there are, and no kernel depends on it.
  descriptor.count = std::min<std::int64_t>(problem_.parts, max_parts);
  descriptor.stacked = problem_.parts > 1 && (call_.part_count == 1 || std::cmp_greater(problem_.parts, max_stacks));
  descriptor.lse = call_.lse.data != nullptr;
  return to_text(descriptor);
}

}  // namespace wavejit::attention_merge
