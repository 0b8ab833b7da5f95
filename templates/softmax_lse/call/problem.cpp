// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/call/problem.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::softmax_lse {
namespace {

using families::range_of;
using families::refusal::dtype_text;
using families::refusal::pointer_text;
using families::refusal::refused;
using families::refusal::up_to;

using attention::type_of;

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
constexpr std::int64_t max_outer_stride = attention::max_batch_stride;
using attention::tensor_limit_bytes;

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

attention::Named named_of(const Tensor& tensor) { return {tensor.name, &tensor.tensor}; }

Check check_kind(const Tensor& tensor, std::uintptr_t alignment) {
  return attention::check_memory(named_of(tensor), alignment);
}

Check check_apart(const Tensor& output, std::uint64_t bytes, const Tensor& other, std::uint64_t other_bytes) {
  if (other.tensor.data == nullptr) return {};
  return attention::check_apart(named_of(output), range_of(output.tensor, bytes), other.name,
                                range_of(other.tensor, other_bytes));
}

Check check_no_overlap(const Tensor& output, int inner_dimension) {
  return attention::check_no_overlap(named_of(output), inner_dimension,
                                     static_cast<std::uint64_t>(output.tensor.sizes[inner_dimension]));
}

Check check_scores(const Tensor& scores) {
  const wavejit_tensor& t = scores.tensor;
  static constexpr std::array<std::int64_t, 4> most = {max_batch, max_heads, max_length, max_length};
  if (!attention::wide_type_of(t.dtype))
    return refused(scores.field("dtype"), dtype_text(t.dtype), "1 (fp16), 2 (bf16), 3 (fp32)");
  for (int d = 0; d < 4; ++d)
    if (t.sizes[d] < 1 || t.sizes[d] > most[static_cast<std::size_t>(d)])
      return refused(scores.field("sizes", d), std::to_string(t.sizes[d]),
                     up_to("1", most[static_cast<std::size_t>(d)]));
  const int bytes = bytes_of(*type_of(t.dtype));
  if (auto kind = check_kind(scores, static_cast<std::uintptr_t>(bytes)); !kind) return kind;
  return check_strides(scores, bytes);
}

Check check_weights(const Tensor& weights, const Tensor& scores) {
  const wavejit_tensor& t = weights.tensor;
  if (!attention::wide_type_of(t.dtype))
    return refused(weights.field("dtype"), dtype_text(t.dtype), "1 (fp16), 2 (bf16), 3 (fp32)");
  const int bytes = bytes_of(*type_of(t.dtype));
  if (auto kind = check_kind(weights, static_cast<std::uintptr_t>(bytes)); !kind) return kind;
  if (auto sizes = check_same_sizes(weights, scores.tensor, scores.tensor.sizes[3], "as scores"); !sizes) return sizes;
  if (auto strides = check_strides(weights, bytes); !strides) return strides;
  if (auto overlap = check_no_overlap(weights, 3); !overlap) return overlap;
  return check_apart(weights, static_cast<std::uint64_t>(bytes), scores,
                     static_cast<std::uint64_t>(bytes_of(*type_of(scores.tensor.dtype))));
}

Check check_lse(const Tensor& lse, const Tensor& scores, const Tensor& weights) {
  const wavejit_tensor& t = lse.tensor;
  if (t.dtype != WAVEJIT_FP32) return refused(lse.field("dtype"), dtype_text(t.dtype), dtype_text(WAVEJIT_FP32));
  if (auto kind = check_kind(lse, 4); !kind) return kind;
  if (auto sizes = check_same_sizes(lse, scores.tensor, 1, "always"); !sizes) return sizes;
  if (t.sizes[2] > 1 && t.strides[2] != 1) return refused(lse.field("strides", 2), std::to_string(t.strides[2]), "1");
  if (auto strides = check_strides({lse.name, t}, 4); !strides) return strides;
  if (auto overlap = check_no_overlap(lse, 2); !overlap) return overlap;
  if (auto apart = check_apart(lse, 4, scores, attention::element_bytes_of(scores.tensor)); !apart) return apart;
  return check_apart(lse, 4, weights, attention::element_bytes_of(weights.tensor));
}

// 16-bit rows that do not all begin at whole dwords.
bool is_unaligned(const wavejit_tensor& t) {
  if (t.data == nullptr || t.dtype == WAVEJIT_FP32) return false;
  const auto odd = [&](int d) { return t.sizes[d] > 1 && t.strides[d] % 2 != 0; };
  return reinterpret_cast<std::uintptr_t>(t.data) % 4 != 0 || odd(0) || odd(1) || odd(2);
}

// What the parts have and this family has not.
constexpr auto absent_fields = attention::without_mask_kinds<wavejit_softmax_lse_arguments>(std::array{
    families::AbsentField{"causal_flags", offsetof(wavejit_softmax_lse_arguments, mask.causal_flags), 8},
});

}  // namespace

Result<SoftmaxProblem> check(const wavejit_softmax_lse_arguments* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_SOFTMAX_LSE, "softmax_lse", absent_fields); !head)
    return std::unexpected(std::move(head.error()));
  const wavejit_softmax_lse_arguments& call = *arguments;
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

  const Result<float> scale_log2e = attention::check_scale(call.scale, call.head.flags, 1);
  const DataType scores_type = *type_of(call.scores.dtype);
  const DataType weights_type = call.weights.data != nullptr ? *type_of(call.weights.dtype) : scores_type;
  const std::int64_t keys = call.scores.sizes[3];
  SoftmaxProblem problem = {
      .shape = {{.scores = scores_type,
                 .weights = weights_type,
                 .rows = rows_of(keys),
                 .access = access_of(scores_type, weights_type, keys,
                                     is_unaligned(call.scores) || is_unaligned(call.weights))}},
      .batch = static_cast<std::uint32_t>(call.scores.sizes[0]),
      .heads = static_cast<std::uint32_t>(call.scores.sizes[1]),
      .query_length = static_cast<std::uint32_t>(call.scores.sizes[2]),
      .key_length = static_cast<std::uint32_t>(keys),
      .scale_log2e = scale_log2e.value_or(0.0F),
  };
  if (!scale_log2e) return std::unexpected(scale_log2e.error());
  const Result<attention::SeenKeys> seen = attention::check_seen_keys(call.mask, keys);
  if (!seen) return std::unexpected(seen.error());
  problem.seen = *seen;
  constexpr std::uint32_t known =
      WAVEJIT_CHECK_LENGTHS | WAVEJIT_SCALE_IS_ZERO | WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  step = attention::check_flags(call.head.flags, known, call.scale);
  if (step && call.reserved != 0) step = refused("reserved", std::to_string(call.reserved), "0");
  if (!step) return std::unexpected(std::move(step.error()));
  return problem;
}

}  // namespace wavejit::softmax_lse
