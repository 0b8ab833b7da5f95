// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "families/call/refusal.h"
#include "families/call/struct_size.h"
#include "families/call/tensor_memory.h"
#include "templates/attention_forward/call/checks.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using families::check_output_size;
using families::check_struct_size;
using families::elements_overlap;
using families::Range;
using families::range_of;
using families::surely_share;
using refusal::bad;
using refusal::bad_pointer;
using refusal::bad_size;
using refusal::bad_stride;
using refusal::dtype_text;
using refusal::field;
using refusal::mismatch;
using refusal::Named;
using refusal::pointer_text;
using refusal::refuse;
using refusal::up_to;

constexpr std::int64_t stride_granule = 8;
constexpr std::uintptr_t tensor_alignment = 16;
constexpr std::uintptr_t lse_alignment = 4;
// Guess: device addresses have 48 bits on every GPU of the table; a tensor that spans more is a wrong stride.
constexpr std::uint64_t tensor_limit_bytes = std::uint64_t{1} << 48;
// Beyond this a stride alone passes the slice limit, and below it no product here overflows.
constexpr std::int64_t max_slice_stride = std::int64_t{1} << 31;
constexpr std::int64_t max_batch_stride = std::int64_t{1} << 46;

using Problem = Result<void>;

bool may_be_empty(const wavejit_tensor& tensor) { return tensor.sizes[1] == 0; }

Problem check_sizes(const Named& named, bool may_have_no_rows, std::int64_t most) {
  const auto& sizes = named.tensor->sizes;
  if (sizes[0] < 1 || sizes[0] > most) return refuse(bad_size(named, 0, up_to("1", most)));
  if (sizes[1] < (may_have_no_rows ? 0 : 1) || sizes[1] > max_length)
    return refuse(bad_size(named, 1, up_to(may_have_no_rows ? "0" : "1", max_length)));
  if (sizes[2] < 1 || sizes[2] > max_heads) return refuse(bad_size(named, 2, up_to("1", max_heads)));
  if (sizes[3] < 1 || sizes[3] > max_head_dim) return refuse(bad_size(named, 3, up_to("1", max_head_dim)));
  return {};
}

// Strides follow from a head dim: one that no kernel has is what stands in the way.
[[gnu::cold, gnu::noinline]] Failure bad_row_stride(const Named& named, int dimension) {
  const auto head_dim = static_cast<int>(named.tensor->sizes[3]);
  const auto has = [&](const HeadDims& dims) { return dims.qk == head_dim || dims.v == head_dim; };
  if (std::ranges::any_of(all_head_dims(), has))
    return bad_stride(named, dimension, "positive multiples of 8 elements (copy the tensor otherwise)");
  std::string known;
  for (const HeadDims& dims : all_head_dims()) known += (known.empty() ? "" : ", ") + to_text(dims);
  return bad_size(named, 3, known + ", of which `wavejit supported` lists those of a target", WAVEJIT_UNSUPPORTED);
}

// q, k, v, o: pointer, type and strides; sizes are known to be in range. The stride of a dimension with one element, or
// of a tensor without rows, is never used and may be anything.
Problem check_tensor(const Named& named, std::int32_t dtype) {
  const wavejit_tensor& t = *named.tensor;
  const bool may_be_fp32 = named.name == std::string_view("o");
  if (t.reserved != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "reserved"), std::to_string(t.reserved), "0"));
  if (t.dtype != dtype && !(may_be_fp32 && t.dtype == WAVEJIT_FP32)) {
    return refuse(bad(
        WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(t.dtype),
        dtype_text(dtype) + ", the dtype of q" + (may_be_fp32 ? ", or " + dtype_text(WAVEJIT_FP32) : std::string())));
  }
  const std::uint64_t bytes = t.dtype == WAVEJIT_FP32 ? 4 : 2;
  const bool empty = may_be_empty(t);
  const bool aligned = reinterpret_cast<std::uintptr_t>(t.data) % tensor_alignment == 0;
  if (!aligned || (t.data == nullptr && !empty)) return refuse(bad_pointer(named, tensor_alignment));
  if (empty) return {};
  for (int d = 0; d < 3; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] <= 0 || t.strides[d] % stride_granule != 0) return refuse(bad_row_stride(named, d));
  }
  if (t.sizes[3] != 1 && t.strides[3] != 1) return refuse(bad_stride(named, 3, "1 (copy the tensor otherwise)"));
  const bool long_rows = t.sizes[1] > 1 && t.strides[1] >= max_slice_stride;
  const bool long_heads = t.sizes[2] > 1 && t.strides[2] >= max_slice_stride;
  if (long_rows || long_heads)
    return refuse(bad_stride(named, long_rows ? 1 : 2, "batch slices that span less than 4 GiB"));
  const std::uint64_t head_span = static_cast<std::uint64_t>(t.sizes[2] - 1) * (t.sizes[2] > 1 ? t.strides[2] : 0);
  const std::uint64_t rows = static_cast<std::uint64_t>(t.sizes[1]) - 1 + tile_overrun_rows;
  const std::uint64_t slice = (rows * row_stride(t) + head_span + t.sizes[3]) * bytes;
  if (slice >= slice_limit_bytes) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(named.name) + ": bytes that one batch slice spans",
                      std::to_string(slice) + " with " + std::to_string(tile_overrun_rows) +
                          " rows of tile overrun (sizes[1] = " + std::to_string(t.sizes[1]) + ", strides[1] = " +
                          std::to_string(t.strides[1]) + ", strides[2] = " + std::to_string(t.strides[2]) + ")",
                      "less than 4294967296 (4 GiB)"));
  }
  if (t.sizes[0] > 1 && t.strides[0] >= max_batch_stride)
    return refuse(bad_stride(named, 0, "less than " + std::to_string(max_batch_stride)));
  if (t.sizes[0] > 1 && static_cast<std::uint64_t>(t.sizes[0] - 1) * t.strides[0] * bytes >= tensor_limit_bytes)
    return refuse(bad_stride(named, 0, "tensors that span less than 2^48 bytes"));
  return {};
}

Problem check_lse(const Named& named, const wavejit_tensor& q) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "reserved"), std::to_string(t.reserved), "0"));
  if (t.dtype != WAVEJIT_FP32)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(t.dtype), dtype_text(WAVEJIT_FP32)));
  if (reinterpret_cast<std::uintptr_t>(t.data) % lse_alignment != 0) return refuse(bad_pointer(named, lse_alignment));
  const std::array<std::int64_t, 4> wanted = {q.sizes[0], q.sizes[2], q.sizes[1], 1};
  static constexpr std::array<const char*, 4> sources = {"q.sizes[0]", "q.sizes[2]", "q.sizes[1]", "always"};
  for (int d = 0; d < 4; ++d) {
    if (t.sizes[d] == wanted[d]) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "sizes") + "[" + std::to_string(d) + "]",
                      std::to_string(t.sizes[d]), std::to_string(wanted[d]) + " (" + sources[d] + ")"));
  }
  if (t.sizes[2] > 1 && t.strides[2] != 1) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "lse.strides[2] (length)", std::to_string(t.strides[2]), "1"));
  }
  for (int d = 0; d < 2; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] < 1 || t.strides[d] >= max_batch_stride ||
        static_cast<std::uint64_t>(t.sizes[d] - 1) * t.strides[d] * 4 >= tensor_limit_bytes) {
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides") + "[" + std::to_string(d) + "]",
                        std::to_string(t.strides[d]), "positive, with a tensor that spans less than 2^48 bytes"));
    }
  }
  return {};
}

[[gnu::cold, gnu::noinline]] Failure shared(const char* output, const char* other, const wavejit_tensor& tensor) {
  return bad(WAVEJIT_INVALID_ARGUMENT, std::string(output) + ".data", pointer_text(tensor.data),
             std::string("memory that ") + other + " does not use");
}

[[gnu::cold, gnu::noinline]] Failure overlapping(const Named& named) {
  const auto& strides = named.tensor->strides;
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides"),
             "[" + std::to_string(strides[0]) + ", " + std::to_string(strides[1]) + ", " + std::to_string(strides[2]) +
                 ", " + std::to_string(strides[3]) + "], with which elements overlap",
             "strides that pass what the dimensions inside them span");
}

Problem check_outputs(const wavejit_attention_forward_arguments& a, const wavejit_tensor& keys,
                      const wavejit_tensor& values, bool lse) {
  const Named o = {"o", &a.o};
  if (elements_overlap(a.o, 3, static_cast<std::uint64_t>(a.o.sizes[3]))) return refuse(overlapping(o));
  const Range q_range = range_of(a.q, 2);
  const Range k_range = range_of(keys, 2);
  const Range v_range = range_of(values, 2);
  const Range o_range = range_of(a.o, a.o.dtype == WAVEJIT_FP32 ? 4 : 2);
  if (surely_share(o_range, q_range)) return refuse(shared("o", "q", a.o));
  if (surely_share(o_range, k_range)) return refuse(shared("o", "k", a.o));
  if (surely_share(o_range, v_range)) return refuse(shared("o", "v", a.o));
  if (!lse) return {};
  if (elements_overlap(a.lse, 2, static_cast<std::uint64_t>(a.lse.sizes[2])))
    return refuse(overlapping({"lse", &a.lse}));
  const Range lse_range = range_of(a.lse, 4);
  if (surely_share(lse_range, q_range)) return refuse(shared("lse", "q", a.lse));
  if (surely_share(lse_range, k_range)) return refuse(shared("lse", "k", a.lse));
  if (surely_share(lse_range, v_range)) return refuse(shared("lse", "v", a.lse));
  if (surely_share(lse_range, o_range)) return refuse(shared("lse", "o", a.lse));
  return {};
}

// A field that is zero means the default.
float scale_of_zero(const wavejit_attention_forward_arguments& call) {
  if ((call.flags & WAVEJIT_SCALE_IS_ZERO) != 0) return 0;
  return static_cast<float>(1 / std::sqrt(static_cast<double>(call.q.sizes[3])));
}

// Whether the rows of all heads of a kv head lie within what a descriptor bounds. Those of q and o do: a batch slice is
// below 4 GiB.
bool heads_stand_close(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 31;
  const bool biased = problem.shape.has(Modifier::bias);
  if (!problem.shape.lse && !biased) return true;
  const std::uint64_t others = problem.group() - 1;
  if (problem.shape.lse && call.lse.sizes[1] > 1 &&
      others * static_cast<std::uint64_t>(call.lse.strides[1]) + problem.query_length >= limit / 4)
    return false;
  if (!biased) return true;
  const std::uint64_t heads = call.bias.sizes[1] > 1 ? others * static_cast<std::uint64_t>(call.bias.strides[1]) : 0;
  const std::uint64_t rows =
      call.bias.sizes[2] > 1 ? problem.query_length * static_cast<std::uint64_t>(call.bias.strides[2]) : 0;
  return heads + rows + problem.key_length + tile_overrun_rows < limit / 2;
}

// The problem is filled in where the caller wants it: hot, and a processor waits for what is copied in larger pieces
// than it was just written.
Problem check_into(const wavejit_attention_forward_arguments* arguments, AttentionProblem& problem) {
  if (arguments == nullptr)
    return fail(WAVEJIT_INVALID_ARGUMENT, "arguments = null; accepted: a struct wavejit_attention_forward_arguments");
  if (auto size = check_struct_size(*arguments, "arguments"); !size) return size;
  const wavejit_attention_forward_arguments& a = *arguments;
  if (a.report != nullptr) {
    if (auto size = check_output_size(*a.report, "report"); !size) return size;
  }

  const bool paged = is_paged(a);
  const std::array<Named, 4> tensors = {{{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"o", &a.o}}};
  const auto& [q, k, v, o] = tensors;
  if (a.q.dtype != WAVEJIT_FP16 && a.q.dtype != WAVEJIT_BF16) {
    return refuse(bad(a.q.dtype == WAVEJIT_FP32 ? WAVEJIT_UNSUPPORTED : WAVEJIT_INVALID_ARGUMENT, "q.dtype",
                      dtype_text(a.q.dtype), "1 (fp16), 2 (bf16)"));
  }
  for (const Named& named : tensors) {
    const bool of_keys = named.tensor == &a.k || named.tensor == &a.v;
    if (auto sizes = check_sizes(named, of_keys, of_keys && paged ? max_pages : max_batch); !sizes) return sizes;
  }
  Extents extents;
  if (auto sequences = check_sequences(a, extents); !sequences) return sequences;
  const std::int64_t kv_batch = paged ? a.k.sizes[0] : a.key_starts != nullptr ? 1 : extents.sequences;
  const char* kv_batch_from = paged ? "k.sizes[0]" : a.key_starts != nullptr ? "packed keys" : extents.sequences_from;
  if (a.k.sizes[0] != kv_batch) return refuse(mismatch(k, 0, kv_batch, kv_batch_from));
  if (a.k.sizes[3] != a.q.sizes[3]) return refuse(mismatch(k, 3, a.q.sizes[3], "q.sizes[3]"));
  if (a.v.sizes[0] != kv_batch) return refuse(mismatch(v, 0, kv_batch, kv_batch_from));
  if (a.v.sizes[1] != a.k.sizes[1]) return refuse(mismatch(v, 1, a.k.sizes[1], "k.sizes[1]"));
  if (a.v.sizes[2] != a.k.sizes[2]) return refuse(mismatch(v, 2, a.k.sizes[2], "k.sizes[2]"));
  if (a.o.sizes[0] != a.q.sizes[0]) return refuse(mismatch(o, 0, a.q.sizes[0], "q.sizes[0]"));
  if (a.o.sizes[1] != a.q.sizes[1]) return refuse(mismatch(o, 1, a.q.sizes[1], "q.sizes[1]"));
  if (a.o.sizes[2] != a.q.sizes[2]) return refuse(mismatch(o, 2, a.q.sizes[2], "q.sizes[2]"));
  if (a.o.sizes[3] != a.v.sizes[3]) return refuse(mismatch(o, 3, a.v.sizes[3], "v.sizes[3]"));
  const auto query_heads = static_cast<std::uint32_t>(a.q.sizes[2]);
  const auto kv_heads = static_cast<std::uint32_t>(a.k.sizes[2]);
  if (query_heads % kv_heads != 0) {
    return refuse(bad_size(k, 2, "divisors of q.sizes[2] = " + std::to_string(a.q.sizes[2])));
  }
  const bool vectorised = a.page_layout != WAVEJIT_PAGES_OF_ROWS;
  KeyTensors flat;
  if (vectorised) [[unlikely]] {
    if (auto layout = check_page_layout(a); !layout) return layout;
    flat = {.k = in_one_row(a.k), .v = in_one_row(a.v)};
  }
  const wavejit_tensor& keys = vectorised ? flat.k : a.k;
  const wavejit_tensor& values = vectorised ? flat.v : a.v;
  const std::array<Named, 4> in_rows = {{{"q", &a.q}, {"k", &keys}, {"v", &values}, {"o", &a.o}}};
  for (const Named& named : in_rows) {
    if (auto tensor = check_tensor(named, a.q.dtype); !tensor) return tensor;
  }
  if (paged) [[unlikely]] {
    if (auto pages = check_pages(a, extents); !pages) return pages;
  }
  const bool lse = a.lse.data != nullptr;
  if (lse) {
    if (auto tensor = check_lse({"lse", &a.lse}, a.q); !tensor) return tensor;
  }
  const float scale = a.scale == 0 ? scale_of_zero(a) : a.scale;
  const float scale_log2e = scale * std::numbers::log2e_v<float>;
  if (!std::isfinite(scale_log2e)) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "scale", std::to_string(a.scale),
                      "finite values whose product with log2 e is finite in fp32"));
  }
  if (auto outputs = check_outputs(a, keys, values, lse); !outputs) return outputs;

  problem = {
      .shape = {.dtype = a.q.dtype == WAVEJIT_BF16 ? DataType::bf16 : DataType::fp16,
                .lse = lse,
                .head_dim_qk = static_cast<int>(a.q.sizes[3]),
                .head_dim_v = static_cast<int>(a.v.sizes[3]),
                .paged = paged,
                .whole_tiles = paged && !vectorised && holds_whole_tiles(a.k.sizes[1], a.first_keys != nullptr),
                .single_keys = paged && a.k.sizes[1] == 1,
                .first_keys = a.first_keys != nullptr,
                .output_fp32 = a.o.dtype == WAVEJIT_FP32,
                .vectorised = vectorised},
      .batch = static_cast<std::uint32_t>(extents.sequences),
      .query_length = static_cast<std::uint32_t>(extents.query_length),
      .key_length = static_cast<std::uint32_t>(extents.key_length),
      .query_heads = query_heads,
      .kv_heads = kv_heads,
      .scale_log2e = scale_log2e,
      .query_rows = static_cast<std::uint64_t>(a.q.sizes[0]) * static_cast<std::uint64_t>(a.q.sizes[1]),
      .uneven_lengths = may_be_uneven(a.key_starts != nullptr || a.key_lengths != nullptr || a.first_keys != nullptr,
                                      extents.sequences, extents.key_length, a.max_total_keys),
      .packed_queries = a.query_starts != nullptr,
  };
  if (auto mask = check_mask(a, problem); !mask) return mask;
  if (auto modifiers = check_modifiers(a, extents, problem); !modifiers) return modifiers;
  problem.close_heads = heads_stand_close(a, problem);
  problem.shape.set_rows(plan_rows(problem.query_length, problem.close_heads ? problem.group() : 1));
  return {};
}

}  // namespace

Result<AttentionProblem> check_attention_forward(const wavejit_attention_forward_arguments* arguments) {
  Result<AttentionProblem> problem(std::in_place);
  if (auto good = check_into(arguments, *problem); !good) [[unlikely]]
    problem = std::unexpected(std::move(good.error()));
  return problem;
}

}  // namespace wavejit::attention_forward
