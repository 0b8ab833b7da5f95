// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/call/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "families/call/refusal.h"
#include "families/call/struct_size.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::softmax_lse {
namespace {

using families::range_of;
using families::surely_share;
using families::refusal::bad;
using families::refusal::dtype_text;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;

using Check = Result<void>;

struct Tensor {
  const char* name;
  const wavejit_tensor& tensor;
  std::string field(const char* member) const { return std::string(name) + "." + member; }
  std::string field(const char* member, int dimension) const {
    static constexpr std::array<const char*, 4> names = {"batch", "heads", "queries", "keys"};
    return field(member) + "[" + std::to_string(dimension) + "] (" + names[static_cast<std::size_t>(dimension)] + ")";
  }
};

// Row strides are 32-bit numbers of bytes in the kernel; the others are 64-bit, and their products stay inside.
constexpr std::int64_t max_row_stride_bytes = std::int64_t{1} << 31;
constexpr std::int64_t max_outer_stride = std::int64_t{1} << 46;
// Guess: device addresses have 48 bits on every GPU of the table; a tensor that spans more is a wrong stride.
constexpr std::uint64_t tensor_limit_bytes = std::uint64_t{1} << 48;

[[gnu::cold, gnu::noinline]] Check refused(const std::string& where, const std::string& value,
                                           const std::string& accepted,
                                           wavejit_status status = WAVEJIT_INVALID_ARGUMENT) {
  return refuse(bad(status, where, value, accepted));
}

std::optional<DataType> type_of(std::int32_t dtype) {
  switch (dtype) {
    case WAVEJIT_FP32:
      return DataType::fp32;
    case WAVEJIT_FP16:
      return DataType::fp16;
    case WAVEJIT_BF16:
      return DataType::bf16;
    default:
      return std::nullopt;
  }
}

Check check_kind(const Tensor& named, std::uintptr_t alignment) {
  const wavejit_tensor& t = named.tensor;
  if (t.reserved != 0) return refused(named.field("reserved"), std::to_string(t.reserved), "0");
  if (t.data == nullptr || reinterpret_cast<std::uintptr_t>(t.data) % alignment != 0)
    return refused(named.field("data"), pointer_text(t.data),
                   "device memory aligned to " + std::to_string(alignment) + " bytes");
  return {};
}

// Sizes are known to be in range. The stride of a dimension with one element is never used and may be anything.
Check check_strides(const Tensor& named, std::int64_t bytes) {
  const wavejit_tensor& t = named.tensor;
  if (t.sizes[3] > 1 && t.strides[3] != 1)
    return refused(named.field("strides", 3), std::to_string(t.strides[3]), "1 (copy the tensor otherwise)");
  if (t.sizes[2] > 1 && (t.strides[2] < t.sizes[3] || t.strides[2] * bytes >= max_row_stride_bytes))
    return refused(named.field("strides", 2), std::to_string(t.strides[2]),
                   std::to_string(t.sizes[3]) + " (sizes[3]) and more, with rows less than 2^31 bytes apart");
  for (int d = 0; d < 2; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] < 1 || t.strides[d] >= max_outer_stride ||
        static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]) *
                static_cast<std::uint64_t>(bytes) >=
            tensor_limit_bytes)
      return refused(named.field("strides", d), std::to_string(t.strides[d]),
                     "positive, with a tensor that spans less than 2^48 bytes");
  }
  return {};
}

Check check_same_sizes(const Tensor& named, const wavejit_tensor& scores, std::int64_t last, const char* last_source) {
  for (int d = 0; d < 4; ++d) {
    const std::int64_t wanted = d == 3 ? last : scores.sizes[d];
    if (named.tensor.sizes[d] == wanted) continue;
    return refused(named.field("sizes", d), std::to_string(named.tensor.sizes[d]),
                   std::to_string(wanted) + " (" + (d == 3 ? last_source : "as scores") + ")");
  }
  return {};
}

Check check_apart(const Tensor& output, std::uint64_t bytes, const Tensor& other, std::uint64_t other_bytes) {
  if (other.tensor.data == nullptr ||
      !surely_share(range_of(output.tensor, bytes), range_of(other.tensor, other_bytes)))
    return {};
  return refused(output.field("data"), pointer_text(output.tensor.data),
                 std::string("memory that ") + other.name + " does not use");
}

Check check_no_overlap(const Tensor& output, int inner_dimension) {
  const auto inner = static_cast<std::uint64_t>(output.tensor.sizes[inner_dimension]);
  if (!families::elements_overlap(output.tensor, inner_dimension, inner)) return {};
  const auto& strides = output.tensor.strides;
  return refused(output.field("strides"),
                 "[" + std::to_string(strides[0]) + ", " + std::to_string(strides[1]) + ", " +
                     std::to_string(strides[2]) + ", " + std::to_string(strides[3]) + "], with which elements overlap",
                 "strides that pass what the dimensions inside them span");
}

Check check_scores(const Tensor& scores) {
  const wavejit_tensor& t = scores.tensor;
  static constexpr std::array<std::int64_t, 4> most = {max_batch, max_heads, max_length, max_length};
  if (!type_of(t.dtype)) return refused(scores.field("dtype"), dtype_text(t.dtype), "1 (fp16), 2 (bf16), 3 (fp32)");
  for (int d = 0; d < 4; ++d)
    if (t.sizes[d] < 1 || t.sizes[d] > most[static_cast<std::size_t>(d)])
      return refused(scores.field("sizes", d), std::to_string(t.sizes[d]),
                     up_to("1", most[static_cast<std::size_t>(d)]));
  const int bytes = element_bytes(*type_of(t.dtype));
  if (auto kind = check_kind(scores, static_cast<std::uintptr_t>(bytes)); !kind) return kind;
  return check_strides(scores, bytes);
}

Check check_weights(const Tensor& weights, const Tensor& scores) {
  const wavejit_tensor& t = weights.tensor;
  if (!type_of(t.dtype)) return refused(weights.field("dtype"), dtype_text(t.dtype), "1 (fp16), 2 (bf16), 3 (fp32)");
  const int bytes = element_bytes(*type_of(t.dtype));
  if (auto kind = check_kind(weights, static_cast<std::uintptr_t>(bytes)); !kind) return kind;
  if (auto sizes = check_same_sizes(weights, scores.tensor, scores.tensor.sizes[3], "as scores"); !sizes) return sizes;
  if (auto strides = check_strides(weights, bytes); !strides) return strides;
  if (auto overlap = check_no_overlap(weights, 3); !overlap) return overlap;
  return check_apart(weights, static_cast<std::uint64_t>(bytes), scores,
                     static_cast<std::uint64_t>(element_bytes(*type_of(scores.tensor.dtype))));
}

Check check_lse(const Tensor& lse, const Tensor& scores, const Tensor& weights) {
  const wavejit_tensor& t = lse.tensor;
  if (t.dtype != WAVEJIT_FP32) return refused(lse.field("dtype"), dtype_text(t.dtype), dtype_text(WAVEJIT_FP32));
  if (auto kind = check_kind(lse, 4); !kind) return kind;
  if (auto sizes = check_same_sizes(lse, scores.tensor, 1, "always"); !sizes) return sizes;
  if (t.sizes[2] > 1 && t.strides[2] != 1) return refused(lse.field("strides", 2), std::to_string(t.strides[2]), "1");
  if (auto strides = check_strides({lse.name, t}, 4); !strides) return strides;
  if (auto overlap = check_no_overlap(lse, 2); !overlap) return overlap;
  const auto bytes_of = [](const wavejit_tensor& tensor) {
    return static_cast<std::uint64_t>(element_bytes(type_of(tensor.dtype).value_or(DataType::fp32)));
  };
  if (auto apart = check_apart(lse, 4, scores, bytes_of(scores.tensor)); !apart) return apart;
  return check_apart(lse, 4, weights, bytes_of(weights.tensor));
}

Check check_flags(const wavejit_softmax_lse_arguments& call) {
  constexpr std::uint32_t all =
      WAVEJIT_CHECK_LENGTHS | WAVEJIT_SCALE_IS_ZERO | WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  if ((call.flags & ~all) != 0)
    return refused("flags", std::to_string(call.flags),
                   "0, or a sum of 1 (check the lengths), 4 (the scale is zero), 8 (no compile), 16 (compile behind)");
  if ((call.flags & WAVEJIT_SCALE_IS_ZERO) != 0 && call.scale != 0)
    return refused("scale", std::to_string(call.scale), "0 beside WAVEJIT_SCALE_IS_ZERO, or no such flag");
  if ((call.flags & WAVEJIT_COMPILE_BEHIND) != 0 && (call.flags & WAVEJIT_NO_COMPILE) == 0)
    return refused("flags", std::to_string(call.flags), "16 (compile behind) beside 8 (no compile) only");
  if (call.reserved != 0) return refused("reserved", std::to_string(call.reserved), "0");
  return {};
}

Check check_limit(const char* name, std::int32_t limit, bool window) {
  if (window ? limit >= -1 : limit == 0 || limit == -1) return {};
  return refused(name, std::to_string(limit),
                 window ? "-1 (no limit), 0 and more" : "0 unless mask has WAVEJIT_MASK_WINDOW (2)");
}

Check check_mask(const wavejit_softmax_lse_arguments& call, SoftmaxProblem& problem) {
  constexpr std::int32_t known = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX;
  if ((call.mask & ~known) != 0)
    return refused("mask", std::to_string(call.mask), "0 (none), or a sum of 1 (causal), 2 (window), 4 (prefix)");
  const bool causal = (call.mask & WAVEJIT_MASK_CAUSAL) != 0;
  const bool window = (call.mask & WAVEJIT_MASK_WINDOW) != 0;
  const bool prefix = (call.mask & WAVEJIT_MASK_PREFIX) != 0;
  if (auto left = check_limit("window_left", call.window_left, window); !left) return left;
  if (auto right = check_limit("window_right", call.window_right, window); !right) return right;
  if (prefix && !causal && !window)
    return refused("mask", std::to_string(call.mask),
                   "4 (prefix) with 1 (causal) or 2 (window): nothing else has a diagonal");
  if (prefix ? call.causal_prefix < 0 || call.causal_prefix > problem.key_length : call.causal_prefix != 0)
    return refused(
        "causal_prefix", std::to_string(call.causal_prefix),
        prefix ? up_to("0", problem.key_length) + ", the keys" : "0 unless mask has WAVEJIT_MASK_PREFIX (4)");
  const Window limits = window_of(causal, window, call.window_left, call.window_right);
  problem.window_left = limits.left;
  problem.window_right = limits.right;
  problem.bottom_right = (causal || window) && !prefix;
  problem.causal_prefix = static_cast<std::int32_t>(call.causal_prefix);
  return {};
}

// 16-bit rows that do not all begin at whole dwords.
bool is_unaligned(const wavejit_tensor& t) {
  if (t.data == nullptr || t.dtype == WAVEJIT_FP32) return false;
  const auto odd = [&](int d) { return t.sizes[d] > 1 && t.strides[d] % 2 != 0; };
  return reinterpret_cast<std::uintptr_t>(t.data) % 4 != 0 || odd(0) || odd(1) || odd(2);
}

}  // namespace

families::Shape SoftmaxShape::shape() const {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {.family = &family(),
          .code = std::uint64_t{1} << 63U | number(access) << 5U | number(rows) << 4U | number(weights) << 2U |
                  number(scores)};
}

SoftmaxShape SoftmaxShape::of(std::uint64_t code) {
  return {.scores = static_cast<DataType>(code & 3U),
          .weights = static_cast<DataType>(code >> 2U & 3U),
          .rows = static_cast<Rows>(code >> 4U & 1U),
          .access = static_cast<Access>(code >> 5U & 1U)};
}

Window window_of(bool causal, bool window, std::int64_t left, std::int64_t right) {
  const auto limit = [](std::int64_t given) {
    return given < 0 ? unlimited_window : static_cast<std::int32_t>(std::min<std::int64_t>(given, unlimited_window));
  };
  Window limits;
  if (window) limits = {.left = limit(left), .right = limit(right)};
  if (causal) limits.right = 0;
  return limits;
}

Result<SoftmaxProblem> check(const wavejit_softmax_lse_arguments* arguments) {
  if (arguments == nullptr)
    return fail(WAVEJIT_INVALID_ARGUMENT, "arguments = null; accepted: a struct wavejit_softmax_lse_arguments");
  if (auto size = families::check_struct_size(*arguments, "arguments"); !size)
    return std::unexpected(std::move(size.error()));
  const wavejit_softmax_lse_arguments& call = *arguments;
  if (call.report != nullptr) {
    if (auto size = families::check_output_size(*call.report, "report"); !size)
      return std::unexpected(std::move(size.error()));
  }
  const Tensor scores = {"scores", call.scores};
  const Tensor weights = {"weights", call.weights};
  const Tensor lse = {"lse", call.lse};
  Check step = check_scores(scores);
  if (step && call.weights.data != nullptr) step = check_weights(weights, scores);
  if (step && call.lse.data != nullptr) step = check_lse(lse, scores, weights);
  if (step && call.weights.data == nullptr && call.lse.data == nullptr)
    step = refused("weights.data", "null", "device memory here, in lse.data, or in both: there is nothing to write");
  if (step && reinterpret_cast<std::uintptr_t>(call.key_lengths) % 4 != 0)
    step = refused("key_lengths", pointer_text(call.key_lengths), "null, or device memory aligned to 4 bytes");
  if (!step) return std::unexpected(std::move(step.error()));

  const float scale = call.scale != 0 ? call.scale : (call.flags & WAVEJIT_SCALE_IS_ZERO) != 0 ? 0.0F : 1.0F;
  const float scale_log2e = scale * std::numbers::log2e_v<float>;
  const DataType scores_type = *type_of(call.scores.dtype);
  const DataType weights_type = call.weights.data != nullptr ? *type_of(call.weights.dtype) : scores_type;
  const std::int64_t keys = call.scores.sizes[3];
  SoftmaxProblem problem = {
      .shape = {.scores = scores_type,
                .weights = weights_type,
                .rows = rows_of(keys),
                .access = access_of(scores_type, weights_type, keys,
                                    is_unaligned(call.scores) || is_unaligned(call.weights))},
      .batch = static_cast<std::uint32_t>(call.scores.sizes[0]),
      .heads = static_cast<std::uint32_t>(call.scores.sizes[1]),
      .query_length = static_cast<std::uint32_t>(call.scores.sizes[2]),
      .key_length = static_cast<std::uint32_t>(keys),
      .scale_log2e = scale_log2e,
  };
  if (!std::isfinite(scale_log2e))
    step = refused("scale", std::to_string(call.scale), "finite values whose product with log2 e is finite in fp32");
  if (step) step = check_mask(call, problem);
  if (step) step = check_flags(call);
  if (!step) return std::unexpected(std::move(step.error()));
  return problem;
}

}  // namespace wavejit::softmax_lse
