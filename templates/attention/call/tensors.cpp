// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/tensors.h"

#include <algorithm>
#include <string>
#include <utility>

#include "templates/attention/call/data_type.h"
#include "templates/attention/call/limits.h"

namespace wavejit::attention {

namespace {

using families::Failure;
using families::Result;
using families::refusal::bad;
using families::refusal::bad_pointer;
using families::refusal::bad_size;
using families::refusal::bad_stride;
using families::refusal::dtype_text;
using families::refusal::field;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;

}  // namespace

Failure size_out_of_range(const Named& named, bool may_have_no_rows, std::int64_t most) {
  const auto& sizes = named.tensor->sizes;
  if (sizes[0] < 1 || sizes[0] > most) return bad_size(named, 0, up_to("1", most));
  if (sizes[1] < (may_have_no_rows ? 0 : 1) || sizes[1] > max_length)
    return bad_size(named, 1, up_to(may_have_no_rows ? "0" : "1", max_length));
  if (sizes[2] < 1 || sizes[2] > max_heads) return bad_size(named, 2, up_to("1", max_heads));
  return bad_size(named, 3, up_to("1", max_head_dim));
}

Failure head_dims_without_code(const HeadDims& dims, std::string field) {
  const int odd = has_code({dims.qk, dims.qk}) ? dims.v : dims.qk;
  const int below = odd / coded_head_dim_step * coded_head_dim_step;
  std::string near;
  if (odd < largest_coded_head_dim)
    near =
        (below > 0 ? std::to_string(below) + ", " : "") + std::to_string(below + coded_head_dim_step) + " and other ";
  return {WAVEJIT_UNSUPPORTED, std::move(field) + "head dim " + to_text(dims) + " has no kernel; accepted: " + near +
                                   "multiples of " + std::to_string(coded_head_dim_step) + " up to " +
                                   std::to_string(largest_coded_head_dim) +
                                   ", of which `wavejit supported` lists those of a target"};
}

// Strides follow from a head dim: one that no kernel has is what stands in the way.
Failure bad_row_stride(const Named& named, int dimension, const TensorRules& rules) {
  const std::span<const HeadDims> head_dims = rules.head_dims;
  const auto head_dim = static_cast<int>(named.tensor->sizes[3]);
  const auto has = [&](const HeadDims& dims) { return dims.qk == head_dim || dims.v == head_dim; };
  if (head_dims.empty() || std::ranges::any_of(head_dims, has))
    return bad_stride(named, dimension,
                      (rules.read_only ? "0, or positive multiples of " : "positive multiples of ") +
                          std::to_string(stride_granule(element_bytes_of(*named.tensor))) +
                          " elements (copy the tensor otherwise)");
  std::string known;
  for (const HeadDims& dims : head_dims) known += (known.empty() ? "" : ", ") + to_text(dims);
  return bad_size(named, 3, known + ", of which `wavejit supported` lists those of a target", WAVEJIT_UNSUPPORTED);
}

Failure bad_reserved(const Named& named) {
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "reserved"), std::to_string(named.tensor->reserved), "0");
}

Failure bad_dtype(const Named& named, const TensorRules& rules) {
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(named.tensor->dtype),
             dtype_text(rules.dtype) + ", the dtype of q" +
                 (rules.may_be_fp32 ? ", or " + dtype_text(WAVEJIT_FP32) : std::string()));
}

Failure bad_alignment(const Named& named) { return bad_pointer(named, tensor_alignment); }

Failure bad_inner_stride(const Named& named) { return bad_stride(named, 3, "1 (copy the tensor otherwise)"); }

Failure bad_far_stride(const Named& named, int dimension) {
  return bad_stride(named, dimension, "batch slices that span less than 4 GiB");
}

Failure bad_slice(const Named& named, const TensorRules& rules, std::uint64_t slice) {
  const wavejit_tensor& t = *named.tensor;
  return bad(WAVEJIT_INVALID_ARGUMENT,
             std::string(named.name) + ": bytes that one " + (rules.by_head ? "head of one " : "") +
                 (rules.longest < 0 ? (rules.by_head ? "batch" : "batch slice") : "sequence") + " spans",
             std::to_string(slice) + " with " + std::to_string(tile_overrun_rows) + " rows of tile overrun (" +
                 (rules.longest < 0 ? "sizes[1] = " + std::to_string(t.sizes[1])
                                    : "the longest has " + std::to_string(rules.longest) + " rows") +
                 ", strides[1] = " + std::to_string(t.strides[1]) + ", strides[2] = " + std::to_string(t.strides[2]) +
                 ")",
             "less than 4294967296 (4 GiB)");
}

Failure bad_batch_stride(const Named& named) {
  if (named.tensor->strides[0] >= max_batch_stride)
    return bad_stride(named, 0, "less than " + std::to_string(max_batch_stride));
  return bad_stride(named, 0, "tensors that span less than 2^48 bytes");
}

namespace {

Result<void> check_scattered_slice(const Named& named) {
  const wavejit_tensor& t = *named.tensor;
  std::uint64_t span = 1;
  for (int d = 1; d < 4; ++d) {
    if (t.sizes[d] <= 1) continue;
    if (t.strides[d] >= max_slice_stride) return refuse(bad_far_stride(named, d));
    span += static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]);
  }
  if (span * element_bytes_of(t) < scattered_limit_bytes) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(named.name) + ": bytes that one batch slice spans",
                    std::to_string(span * element_bytes_of(t)),
                    "less than 2147483648 (2 GiB) where dims or rows do not begin at multiples of 16 bytes"));
}

}  // namespace

Result<void> check_slice(const Named& named, const TensorRules& rules) {
  if (rules.scattered) return check_scattered_slice(named);
  const wavejit_tensor& t = *named.tensor;
  const bool long_rows = t.sizes[1] > 1 && t.strides[1] >= max_slice_stride;
  const bool long_heads = t.sizes[2] > 1 && t.strides[2] >= max_slice_stride;
  if (long_rows || long_heads) return refuse(bad_far_stride(named, long_rows ? 1 : 2));
  const std::uint64_t head_span =
      rules.by_head || t.sizes[2] == 1 ? 0 : static_cast<std::uint64_t>(t.sizes[2] - 1) * t.strides[2];
  const auto bytes_of = [&](std::int64_t rows) {
    const std::uint64_t with_overrun = static_cast<std::uint64_t>(rows) + tile_overrun_rows - 1;
    return (with_overrun * row_stride(t) + head_span + t.sizes[3]) * element_bytes_of(t);
  };
  const std::uint64_t whole = bytes_of(t.sizes[1]);
  if (whole < slice_limit_bytes) return {};
  if (rules.longest < 0) return refuse(bad_slice(named, rules, whole));
  if (const std::uint64_t longest = bytes_of(rules.longest); longest >= slice_limit_bytes)
    return refuse(bad_slice(named, rules, longest));
  // What a slice bounds of others is said here, as of keys in pages.
  if (t.sizes[1] > max_paged_length)
    return refuse(bad_size(named, 1, up_to("of packed sequences that span 4 GiB and more, 1", max_paged_length)));
  return {};
}

Result<void> check_scattered(const Named& named, const TensorRules& rules) {
  const wavejit_tensor& t = *named.tensor;
  const std::uint64_t bytes = element_bytes_of(t);
  if (t.data == nullptr || !is_aligned(t, bytes)) return refuse(bad_pointer(named, bytes));
  for (int d = 0; d < 4; ++d) {
    if (t.sizes[d] == 1) continue;
    const bool repeats = rules.read_only && (d == 0 || d == 2) && t.strides[d] == 0;
    if (t.strides[d] <= 0 && !repeats) return refuse(bad_row_stride(named, d, rules));
  }
  if (t.sizes[3] != 1 && t.strides[3] != 1 && t.sizes[1] != 1 && t.strides[1] != 1)
    return refuse(bad_stride(named, 3, "1, or 1 for strides[1] (copy the tensor otherwise)"));
  if (auto slice = check_scattered_slice(named); !slice) return slice;
  if (t.sizes[0] > 1 && (t.strides[0] >= max_batch_stride || static_cast<std::uint64_t>(t.sizes[0] - 1) *
                                                                     static_cast<std::uint64_t>(t.strides[0]) * bytes >=
                                                                 tensor_limit_bytes))
    return refuse(bad_batch_stride(named));
  return {};
}

Result<void> check_any_tensor(const Named& named, const TensorRules& rules) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0) [[unlikely]]
    return refuse(bad_reserved(named));
  if (t.dtype != rules.dtype && !(rules.may_be_fp32 && t.dtype == WAVEJIT_FP32)) [[unlikely]]
    return refuse(bad_dtype(named, rules));
  const std::uint64_t bytes = element_bytes_of(t);
  if (rules.scattered) [[unlikely]]
    return check_scattered(named, rules);
  const bool empty = t.sizes[1] == 0;
  const std::uintptr_t alignment = rules.may_be_scattered && empty ? bytes : tensor_alignment;
  if ((reinterpret_cast<std::uintptr_t>(t.data) & (alignment - 1)) != 0 || (t.data == nullptr && !empty)) [[unlikely]]
    return refuse(bad_alignment(named));
  if (empty) return {};
  for (int d = 0; d < 3; ++d) {
    if (t.sizes[d] == 1) continue;
    const bool repeats = rules.read_only && t.strides[d] == 0;
    if ((t.strides[d] <= 0 && !repeats) || !is_multiple(t.strides[d], stride_granule(bytes))) [[unlikely]]
      return refuse(bad_row_stride(named, d, rules));
  }
  if (t.sizes[3] != 1 && t.strides[3] != 1) [[unlikely]]
    return refuse(bad_inner_stride(named));
  if (auto slice = check_slice(named, rules); !slice) [[unlikely]]
    return slice;
  if (t.sizes[0] > 1 && (t.strides[0] >= max_batch_stride ||
                         static_cast<std::uint64_t>(t.sizes[0] - 1) * t.strides[0] * bytes >= tensor_limit_bytes))
      [[unlikely]]
    return refuse(bad_batch_stride(named));
  return {};
}

Failure wrong_kind(const Named& named, std::int32_t dtype, std::uintptr_t alignment) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0) return bad_reserved(named);
  if (t.dtype != dtype)
    return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(t.dtype), dtype_text(dtype));
  return bad_pointer(named, alignment);
}

Failure rows_apart(const Named& named) {
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides[2] (length)"), std::to_string(named.tensor->strides[2]),
             "1");
}

Failure far_row_numbers(const Named& named, int dimension) {
  return wrong_stride(named, dimension, "positive, with a tensor that spans less than 2^48 bytes");
}

Result<void> check_memory(const Named& named, std::uintptr_t alignment) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0) return refuse(bad_reserved(named));
  if (t.data == nullptr || !is_aligned(t, alignment)) return refuse(bad_pointer(named, alignment));
  return {};
}

Failure wrong_size(const Named& named, int dimension, const std::string& accepted) {
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "sizes") + "[" + std::to_string(dimension) + "]",
             std::to_string(named.tensor->sizes[dimension]), accepted);
}

Failure wrong_stride(const Named& named, int dimension, const std::string& accepted) {
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides") + "[" + std::to_string(dimension) + "]",
             std::to_string(named.tensor->strides[dimension]), accepted);
}

Failure other_size(const Named& named, int dimension, std::int64_t wanted, const char* source, bool broadcasts) {
  return wrong_size(named, dimension,
                    (broadcasts && wanted != 1 ? "1 or " : "") + std::to_string(wanted) + " (" + source + ")");
}

Failure overlapping(const Named& named) {
  const auto& strides = named.tensor->strides;
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides"),
             "[" + std::to_string(strides[0]) + ", " + std::to_string(strides[1]) + ", " + std::to_string(strides[2]) +
                 ", " + std::to_string(strides[3]) + "], with which elements overlap",
             "strides that pass what the dimensions inside them span");
}

Failure shared_memory(const Named& output, const char* other) {
  return bad(WAVEJIT_INVALID_ARGUMENT, std::string(output.name) + ".data", pointer_text(output.tensor->data),
             std::string("memory that ") + other + " does not use");
}

}  // namespace wavejit::attention
