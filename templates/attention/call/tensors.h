// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of a call: sizes, types, strides, and memory that outputs have for themselves.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "families/call/failure.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/kernel/head_dims.h"
#include "templates/attention/kernel/types.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

using families::refusal::Named;

// The stride of dimension 1 as kernels use it: a dimension of one row has no stride of its own, and rows of a tile
// beyond it must not fall back onto it.
inline std::int64_t row_stride(const wavejit_tensor& tensor) {
  return tensor.sizes[1] > 1 ? tensor.strides[1] : tensor.sizes[3];
}

// What stands in the way, in words. The checks are here since a hot call makes a dozen of them (bench/README.md).
[[gnu::cold]] families::Failure size_out_of_range(const Named& named, bool may_have_no_rows, std::int64_t most);

// Tensors [batch, length, heads, head dim]: q, k, v, o and their like. `most`: the largest batch.
inline families::Result<void> check_sizes(const Named& named, bool may_have_no_rows, std::int64_t most) {
  const auto& sizes = named.tensor->sizes;
  if (sizes[0] < 1 || sizes[0] > most || sizes[1] < (may_have_no_rows ? 0 : 1) || sizes[1] > max_length ||
      sizes[2] < 1 || sizes[2] > max_heads || sizes[3] < 1 || sizes[3] > max_head_dim) [[unlikely]]
    return families::refusal::refuse(size_out_of_range(named, may_have_no_rows, most));
  return {};
}

// The refusal of head dims that a shape's code cannot say (kernel/head_dims.h): they would have the code, and the kernel,
// of others. `field` begins it, as "q.sizes[3] (head dim) = 100: ", and is empty for a line.
[[gnu::cold]] families::Failure head_dims_without_code(const HeadDims& dims, std::string field = {});
inline families::Result<void> check_head_dims(const wavejit_tensor& q, const wavejit_tensor& v) {
  const HeadDims dims = {.qk = static_cast<int>(q.sizes[3]), .v = static_cast<int>(v.sizes[3])};
  if (!has_code(dims)) [[unlikely]] {
    const bool of_q = !has_code({dims.qk, dims.qk});
    return families::refusal::refuse(head_dims_without_code(
        dims,
        (of_q ? "q" : "v") + std::string(".sizes[3] (head dim) = ") + std::to_string(of_q ? dims.qk : dims.v) + ": "));
  }
  return {};
}

// Whether a stride is a multiple of a power of two. Hot: a division would take longer than all else that a stride is asked.
constexpr bool is_multiple(std::int64_t stride, std::int64_t power) { return (stride & (power - 1)) == 0; }

// Elements: 16 bytes, also of f32 twice that.
constexpr std::int64_t stride_granule(std::uint64_t element_bytes) { return element_bytes == 1 ? 16 : 8; }
// Bytes of memory from its first element to its last; 0: there is no tensor.
inline std::uint64_t touched_bytes(const wavejit_tensor& tensor) {
  if (tensor.data == nullptr) return 0;
  const families::Range range = families::range_of(tensor, element_bytes_of(tensor));
  return range.end - range.begin;
}

constexpr std::uintptr_t tensor_alignment = 16;
// Beyond this a stride alone passes the slice limit, and below it no product here overflows.
constexpr std::int64_t max_slice_stride = std::int64_t{1} << 31;

struct TensorRules {
  std::int32_t dtype;        // the type that it must have
  bool may_be_fp32 = false;  // fp32 is accepted, too
  // Head dims that have kernels. A stride that is wrong because of another head dim is refused with these; empty: as a
  // stride.
  std::span<const HeadDims> head_dims = {};
  bool by_head = false;  // a kernel bounds a slice of one head, not of all heads of a batch
  // The rows of the longest packed sequence, each of which kernels bound by itself. Below 0: the tensor is not packed.
  std::int64_t longest = -1;
  bool may_be_scattered = false;
  bool scattered = false;  // and is (is_scattered)
  bool read_only = false;  // strides of 0 are as good: what is the same for all batches, rows or heads lies there once
};
// Elements in 16 bytes.
inline std::int64_t granule_of(const wavejit_tensor& t) {
  return std::int64_t{16} >> std::countr_zero(element_bytes_of(t));
}
// Whether kernels that move 16 bytes of a row at a time cannot have it: dims do not stand side by side, or rows begin
// at other places than their multiples. Of a tensor whose strides are positive; one without rows has none.
inline bool is_scattered(const wavejit_tensor& t) {
  if (t.sizes[1] == 0) return false;
  const std::int64_t granule = granule_of(t);
  bool scattered = t.sizes[3] != 1 && t.strides[3] != 1;
  for (int d = 0; d < 3; ++d) scattered |= t.sizes[d] != 1 && !is_multiple(t.strides[d], granule);
  return scattered;
}
// Checks such a tensor in place of check_tensor: strides are positive, that of rows or that of dims is 1, and a batch
// slice is below 2 GiB (emit/scattered.h).
families::Result<void> check_scattered(const Named& named, const TensorRules& rules);
[[gnu::cold]] families::Failure bad_reserved(const Named& named);
[[gnu::cold]] families::Failure bad_dtype(const Named& named, const TensorRules& rules);
[[gnu::cold]] families::Failure bad_alignment(const Named& named);
[[gnu::cold]] families::Failure bad_row_stride(const Named& named, int dimension, const TensorRules& rules);
[[gnu::cold]] families::Failure bad_inner_stride(const Named& named);
[[gnu::cold]] families::Failure bad_far_stride(const Named& named, int dimension);
[[gnu::cold]] families::Failure bad_slice(const Named& named, const TensorRules& rules, std::uint64_t slice);
[[gnu::cold]] families::Failure bad_batch_stride(const Named& named);

// A quick test for tensors with rows: true if check_tensor would take the tensor. False says nothing. Hot: four tensors a
// call.
inline bool is_plain(const wavejit_tensor& t, const TensorRules& rules) {
  const std::uint64_t bytes = element_bytes_of(t);
  const auto granule_mask = static_cast<std::uint64_t>(stride_granule(bytes) - 1);
  // 0, as one element's stride counts, or positive, of whole granules and below `limit`.
  const auto good = [&](int dimension, std::int64_t limit) {
    const auto stride = static_cast<std::uint64_t>(t.strides[dimension]);
    return t.sizes[dimension] == 1 ||
           (stride - 1 < static_cast<std::uint64_t>(limit) - 1 && (stride & granule_mask) == 0);
  };
  if (((reinterpret_cast<std::uintptr_t>(t.data) & (tensor_alignment - 1)) |
       static_cast<std::uint32_t>(t.reserved | (t.dtype ^ rules.dtype)) |
       static_cast<std::uint64_t>(rules.scattered)) != 0 ||
      t.data == nullptr || t.sizes[1] == 0 || (t.sizes[3] != 1 && t.strides[3] != 1) || !good(0, max_batch_stride) ||
      !good(1, max_slice_stride) || !good(2, max_slice_stride))
    return false;
  // All heads' even where a kernel bounds one.
  const std::uint64_t head_span = t.sizes[2] == 1 ? 0 : static_cast<std::uint64_t>(t.sizes[2] - 1) * t.strides[2];
  const std::uint64_t rows = static_cast<std::uint64_t>(t.sizes[1]) - 1 + tile_overrun_rows;
  return (rows * row_stride(t) + head_span + t.sizes[3]) * bytes < slice_limit_bytes &&
         (t.sizes[0] == 1 || static_cast<std::uint64_t>(t.sizes[0] - 1) * t.strides[0] * bytes < tensor_limit_bytes);
}

families::Result<void> check_any_tensor(const Named& named, const TensorRules& rules);

// What a kernel bounds with one descriptor is below 4 GiB (scattered: 2 GiB). Also of what a line says of a tensor, in
// whose place there is no memory: sizes and strides are good but for that.
families::Result<void> check_slice(const Named& named, const TensorRules& rules);

// Pointer, type and strides; sizes are known to be in range. The stride of a dimension with one element, or of a tensor
// without rows, is never used and may be anything.
inline families::Result<void> check_tensor(const Named& named, const TensorRules& rules) {
  if (is_plain(*named.tensor, rules)) [[likely]]
    return {};
  return check_any_tensor(named, rules);
}

inline bool is_aligned(const wavejit_tensor& tensor, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(tensor.data) % alignment == 0;
}

[[gnu::cold]] families::Failure wrong_kind(const Named& named, std::int32_t dtype, std::uintptr_t alignment);
// Type, alignment, nothing in the reserved field.
inline families::Result<void> check_kind(const Named& named, std::int32_t dtype, std::uintptr_t alignment) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0 || t.dtype != dtype || !is_aligned(t, alignment)) [[unlikely]]
    return families::refusal::refuse(wrong_kind(named, dtype, alignment));
  return {};
}
// The same without the type, of memory that must be there.
families::Result<void> check_memory(const Named& named, std::uintptr_t alignment);

[[gnu::cold]] families::Failure wrong_size(const Named& named, int dimension, const std::string& accepted);
[[gnu::cold]] families::Failure wrong_stride(const Named& named, int dimension, const std::string& accepted);
[[gnu::cold]] families::Failure other_size(const Named& named, int dimension, std::int64_t wanted, const char* source,
                                           bool broadcasts);
// `source`: the field that says so. `broadcasts`: or 1.
inline families::Result<void> check_size(const Named& named, int dimension, std::int64_t wanted, const char* source,
                                         bool broadcasts) {
  const std::int64_t size = named.tensor->sizes[dimension];
  if (size != wanted && !(broadcasts && size == 1)) [[unlikely]]
    return families::refusal::refuse(other_size(named, dimension, wanted, source, broadcasts));
  return {};
}

[[gnu::cold]] families::Failure rows_apart(const Named& named);
[[gnu::cold]] families::Failure far_row_numbers(const Named& named, int dimension);
// f32 [batch, heads, length, 1] beside q, the rows of a head side by side: lse, and what else has a number a row.
inline families::Result<void> check_row_numbers(const Named& named, const wavejit_tensor& q) {
  const wavejit_tensor& t = *named.tensor;
  if (auto kind = check_kind(named, WAVEJIT_FP32, alignof(float)); !kind) [[unlikely]]
    return kind;
  if (auto batch = check_size(named, 0, q.sizes[0], "q.sizes[0]", false); !batch) [[unlikely]]
    return batch;
  if (auto heads = check_size(named, 1, q.sizes[2], "q.sizes[2]", false); !heads) [[unlikely]]
    return heads;
  if (auto rows = check_size(named, 2, q.sizes[1], "q.sizes[1]", false); !rows) [[unlikely]]
    return rows;
  if (auto one = check_size(named, 3, 1, "always", false); !one) [[unlikely]]
    return one;
  if (t.sizes[2] > 1 && t.strides[2] != 1) [[unlikely]]
    return families::refusal::refuse(rows_apart(named));
  for (int d = 0; d < 2; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] < 1 || t.strides[d] >= max_batch_stride ||
        static_cast<std::uint64_t>(t.sizes[d] - 1) * t.strides[d] * sizeof(float) >= tensor_limit_bytes) [[unlikely]]
      return families::refusal::refuse(far_row_numbers(named, d));
  }
  return {};
}

[[gnu::cold]] families::Failure overlapping(const Named& output);
// No two elements of an output share memory; `row_dimension` has `inner` elements side by side.
inline families::Result<void> check_no_overlap(const Named& output, int row_dimension, std::uint64_t inner) {
  if (families::elements_overlap(*output.tensor, row_dimension, inner)) [[unlikely]]
    return families::refusal::refuse(overlapping(output));
  return {};
}

[[gnu::cold]] families::Failure shared_memory(const Named& output, const char* other);
inline families::Result<void> check_apart(const Named& output, const families::Range& of_output, const char* other,
                                          const families::Range& of_other) {
  if (families::surely_share(of_output, of_other)) [[unlikely]]
    return families::refusal::refuse(shared_memory(output, other));
  return {};
}

}  // namespace wavejit::attention
