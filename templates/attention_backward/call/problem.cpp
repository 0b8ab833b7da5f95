// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/call/problem.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "families/call/refusal.h"
#include "families/call/struct_size.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

using families::refusal::bad;
using families::refusal::dtype_text;
using families::refusal::field;
using families::refusal::Named;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;
using Call = wavejit_attention_backward_arguments;

Result<void> refused(const std::string& where, const std::string& value, const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, where, value, accepted));
}

Result<void> check_flags(const Call& call) {
  constexpr std::uint32_t all = WAVEJIT_SCALE_IS_ZERO | WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  if ((call.flags & ~all) != 0)
    return refused("flags", std::to_string(call.flags),
                   "0, or a sum of 4 (the scale is zero), 8 (no compile), 16 (compile behind)");
  if ((call.flags & WAVEJIT_SCALE_IS_ZERO) != 0 && call.scale != 0)
    return refused("scale", std::to_string(call.scale), "0 beside WAVEJIT_SCALE_IS_ZERO, or no such flag");
  if ((call.flags & WAVEJIT_COMPILE_BEHIND) != 0 && (call.flags & WAVEJIT_NO_COMPILE) == 0)
    return refused("flags", std::to_string(call.flags), "16 (compile behind) beside 8 (no compile) only");
  if (call.reserved != 0) return refused("reserved", std::to_string(call.reserved), "0");
  return {};
}

Result<void> check_mask(const Call& call, BackwardProblem& problem) {
  constexpr std::int32_t known = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX;
  if ((call.mask & ~known) != 0)
    return refused("mask", std::to_string(call.mask), "0 (none), or a sum of 1 (causal), 2 (window), 4 (prefix)");
  const bool causal = (call.mask & WAVEJIT_MASK_CAUSAL) != 0;
  const bool window = (call.mask & WAVEJIT_MASK_WINDOW) != 0;
  const bool prefix = (call.mask & WAVEJIT_MASK_PREFIX) != 0;
  for (const auto& [name, limit] : {std::pair{"window_left", call.window_left}, {"window_right", call.window_right}})
    if (window ? limit < -1 : limit != 0 && limit != -1)
      return refused(name, std::to_string(limit),
                     window ? "-1 (no limit), 0 and more" : "0 unless mask has WAVEJIT_MASK_WINDOW (2)");
  if (prefix && !causal && !window)
    return refused("mask", std::to_string(call.mask),
                   "4 (prefix) with 1 (causal) or 2 (window): nothing else has a diagonal");
  if (prefix ? call.causal_prefix < 0 || call.causal_prefix > problem.key_length : call.causal_prefix != 0)
    return refused(
        "causal_prefix", std::to_string(call.causal_prefix),
        prefix ? up_to("0", problem.key_length) + ", the keys" : "0 unless mask has WAVEJIT_MASK_PREFIX (4)");
  const MaskChoice choice = choose_mask(causal, window, call.window_left, call.window_right);
  problem.shape.mask = choice.mask;
  problem.window_left = choice.left;
  problem.window_right = choice.right;
  problem.bottom_right = !prefix;
  problem.causal_prefix = static_cast<std::int32_t>(call.causal_prefix);
  return {};
}

// Slopes of every query head: fp32 [B or 1, Hq, 1, 1], the heads of one batch side by side.
Result<void> check_alibi(const Call& call, std::int64_t sequences) {
  const Named named = {"alibi", &call.alibi};
  const wavejit_tensor& t = call.alibi;
  if (t.reserved != 0) return refused(field(named, "reserved"), std::to_string(t.reserved), "0");
  if (t.dtype != WAVEJIT_FP32) return refused(field(named, "dtype"), dtype_text(t.dtype), dtype_text(WAVEJIT_FP32));
  if (reinterpret_cast<std::uintptr_t>(t.data) % 4 != 0)
    return refused(field(named, "data"), pointer_text(t.data), "device memory aligned to 4 bytes");
  const bool by_batch = t.sizes[0] == sequences;
  if ((!by_batch && t.sizes[0] != 1) || t.sizes[1] != call.q.sizes[2] || t.sizes[2] != 1 || t.sizes[3] != 1)
    return refused(
        field(named, "sizes"),
        "[" + std::to_string(t.sizes[0]) + ", " + std::to_string(t.sizes[1]) + ", " + std::to_string(t.sizes[2]) +
            ", " + std::to_string(t.sizes[3]) + "]",
        "[1 or " + std::to_string(sequences) + ", " + std::to_string(call.q.sizes[2]) + " (q.sizes[2]), 1, 1]");
  if (t.sizes[1] > 1 && t.strides[1] != 1)
    return refused(field(named, "strides") + "[1]", std::to_string(t.strides[1]), "1");
  if (t.sizes[0] > 1 && (t.strides[0] < t.sizes[1] || t.strides[0] >= std::int64_t{1} << 40))
    return refused(field(named, "strides") + "[0]", std::to_string(t.strides[0]),
                   std::to_string(t.sizes[1]) + " (sizes[1]) and more");
  return {};
}

Result<void> check_modifiers(const Call& call, BackwardProblem& problem) {
  if (call.softcap != 0) {
    if (!std::isfinite(call.softcap) || call.softcap < 0)
      return refused("softcap", std::to_string(call.softcap), "0 (none), finite positive values");
    problem.shape.modifiers.add(Modifier::softcap);
  }
  if (call.alibi.data != nullptr) {
    if (auto good = check_alibi(call, problem.batch); !good) return good;
    problem.shape.modifiers.add(Modifier::alibi);
  }
  return {};
}

Result<BackwardProblem> check_all(const Call& call) {
  if (auto tensors = check_tensors(call); !tensors) return std::unexpected(std::move(tensors.error()));
  auto extents = check_sequences(call);
  if (!extents) return std::unexpected(std::move(extents.error()));
  if (auto sizes = check_tensor_sizes(call, *extents); !sizes) return std::unexpected(std::move(sizes.error()));
  BackwardProblem problem = {
      .shape = {.dtype = call.q.dtype == WAVEJIT_BF16 ? DataType::bf16 : DataType::fp16,
                .head_dim_qk = static_cast<int>(call.q.sizes[3]),
                .head_dim_v = static_cast<int>(call.v.sizes[3]),
                .gradients_fp32 = call.dq.dtype == WAVEJIT_FP32,
                .runs = runs_of(extents->query_length, call.q.sizes[2] / call.k.sizes[2])},
      .batch = static_cast<std::uint32_t>(extents->sequences),
      .query_length = static_cast<std::uint32_t>(extents->query_length),
      .key_length = static_cast<std::uint32_t>(extents->key_length),
      .query_heads = static_cast<std::uint32_t>(call.q.sizes[2]),
      .kv_heads = static_cast<std::uint32_t>(call.k.sizes[2]),
      .scale = call.scale != 0 ? call.scale
               : (call.flags & WAVEJIT_SCALE_IS_ZERO) != 0
                   ? 0.0F
                   : static_cast<float>(1 / std::sqrt(static_cast<double>(call.q.sizes[3]))),
      .delta_bytes = static_cast<std::uint64_t>(call.q.sizes[0]) * static_cast<std::uint64_t>(call.q.sizes[1]) *
                     static_cast<std::uint64_t>(call.q.sizes[2]) * sizeof(float),
  };
  problem.scale_log2e = problem.scale * std::numbers::log2e_v<float>;
  if (problem.shape.runs == Runs::several)
    problem.parts_bytes = parts_bytes_of_head(problem) * problem.kv_heads * problem.batch;
  Result<void> step;
  if (!std::isfinite(problem.scale_log2e))
    step = refused("scale", std::to_string(call.scale), "finite values whose product with log2 e is finite in fp32");
  if (step) step = check_flags(call);
  if (step) step = check_mask(call, problem);
  if (step) step = check_modifiers(call, problem);
  if (!step) return std::unexpected(std::move(step.error()));
  BackwardShape& shape = problem.shape;
  shape.many_queries = are_many(problem.batch, problem.query_heads, problem.query_length, shape.mask);
  shape.many_keys = are_many(problem.batch, problem.kv_heads, problem.key_length, shape.mask);
  return problem;
}

}  // namespace

std::uint64_t parts_bytes_of_head(const BackwardProblem& problem) {
  constexpr std::uint64_t tile = most_tile_keys;
  const std::uint64_t keys = (problem.key_length + tile - 1) / tile * tile;
  const int dims = problem.shape.head_dim_qk + problem.shape.head_dim_v;
  return keys * static_cast<std::uint64_t>(dims) * sizeof(float);
}

families::Shape BackwardShape::shape() const {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {.family = &family(),
          .code = std::uint64_t{1} << 63U | number(modifiers.bits()) << 48U | number(dtype) << 44U |
                  number(mask) << 40U | number(gradients_fp32) << 36U | number(runs) << 35U |
                  number(many_queries) << 34U | number(many_keys) << 33U | number(head_dim_qk) << 16U |
                  number(head_dim_v)};
}

BackwardShape BackwardShape::of(std::uint64_t code) {
  const auto bits = [&](unsigned from, unsigned count) { return code >> from & ((std::uint64_t{1} << count) - 1); };
  return {.dtype = static_cast<DataType>(bits(44, 2)),
          .head_dim_qk = static_cast<int>(bits(16, 16)),
          .head_dim_v = static_cast<int>(bits(0, 16)),
          .mask = static_cast<Mask>(bits(40, 2)),
          .modifiers = Modifiers::from_bits(static_cast<std::uint8_t>(bits(48, 8))),
          .gradients_fp32 = bits(36, 1) != 0,
          .runs = static_cast<Runs>(bits(35, 1)),
          .many_queries = bits(34, 1) != 0,
          .many_keys = bits(33, 1) != 0};
}

MaskChoice choose_mask(bool causal, bool window, std::int64_t left, std::int64_t right) {
  const auto limit = [](std::int64_t given) {
    return given < 0 ? attention::unlimited_window
                     : static_cast<std::int32_t>(std::min<std::int64_t>(given, attention::unlimited_window));
  };
  MaskChoice choice;
  if (window) {
    choice.left = limit(left);
    choice.right = limit(right);
  }
  if (causal) choice.right = 0;
  const bool open_left = choice.left == attention::unlimited_window;
  if (open_left && choice.right == 0)
    choice.mask = Mask::causal;
  else if (!open_left || choice.right != attention::unlimited_window)
    choice.mask = Mask::window;
  return choice;
}

// A device has 256 compute units and more. With a mask half of the work is in a quarter of the tiles, and it takes
// twice as many to even out.
bool are_many(std::int64_t sequences, std::int64_t heads, std::int64_t length, Mask mask) {
  constexpr std::int64_t units = 256;
  constexpr std::int64_t tile = 32 * waves * most_blocks;
  return sequences * heads * ((length + tile - 1) / tile) >= (mask == Mask::none ? units : 2 * units);
}

Runs runs_of(std::int64_t query_length, std::int64_t group) {
  const std::int64_t rows = std::int64_t{run_tiles_of(static_cast<std::uint32_t>(group))} * tile_rows;
  return query_length <= rows ? Runs::one : Runs::several;
}

Result<BackwardProblem> check(const Call* arguments) {
  if (arguments == nullptr)
    return fail(WAVEJIT_INVALID_ARGUMENT, "arguments = null; accepted: a struct wavejit_attention_backward_arguments");
  if (auto size = families::check_struct_size(*arguments, "arguments"); !size)
    return std::unexpected(std::move(size.error()));
  if (arguments->report != nullptr)
    if (auto size = families::check_output_size(*arguments->report, "report"); !size)
      return std::unexpected(std::move(size.error()));
  return check_all(*arguments);
}

Result<void> check_workspace(const Call& call, std::uint64_t bytes) {
  if (call.workspace == nullptr) {
    if (call.workspace_bytes == 0) return {};
    return refused("workspace_bytes", std::to_string(call.workspace_bytes), "0 without a workspace");
  }
  if (reinterpret_cast<std::uintptr_t>(call.workspace) % workspace_alignment != 0)
    return refused("workspace", pointer_text(call.workspace), "null, or device memory aligned to 256 bytes");
  if (call.workspace_bytes < bytes)
    return refused("workspace_bytes", std::to_string(call.workspace_bytes),
                   std::to_string(bytes) + " and more (wavejit_attention_backward_workspace)");
  return {};
}

}  // namespace wavejit::attention_backward
