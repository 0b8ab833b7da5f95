// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of a call: sizes against each other, types, strides, and that outputs are nobody's inputs.
#include <algorithm>
#include <array>
#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention_backward/call/problem.h"

namespace wavejit::attention_backward {
namespace {

using families::refusal::bad;
using families::refusal::bad_pointer;
using families::refusal::bad_size;
using families::refusal::bad_stride;
using families::refusal::dtype_text;
using families::refusal::field;
using families::refusal::mismatch;
using families::refusal::Named;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;
using Call = wavejit_attention_backward_arguments;

constexpr std::int64_t stride_granule = 8;
constexpr std::uintptr_t tensor_alignment = 16;
// A buffer descriptor spans less than 4 GiB; a tile, or one fetched ahead, stands up to so many rows beyond the last.
constexpr std::uint64_t slice_limit_bytes = std::uint64_t{1} << 32;
constexpr std::uint64_t tile_overrun_rows = 256;
// Beyond these no product here overflows. Device addresses have 48 bits on every GPU of the table (a guess).
constexpr std::int64_t max_slice_stride = std::int64_t{1} << 31;
constexpr std::int64_t max_batch_stride = std::int64_t{1} << 46;
constexpr std::uint64_t tensor_limit_bytes = std::uint64_t{1} << 48;

struct Role {
  const char* name;
  wavejit_tensor Call::* tensor;
  bool of_keys;    // sizes as k, else as q
  bool of_values;  // the last size is v's
  bool gradient;   // written; its type may be fp32
};
constexpr std::array<Role, 8> roles = {{{"q", &Call::q, false, false, false},
                                        {"k", &Call::k, true, false, false},
                                        {"v", &Call::v, true, true, false},
                                        {"o", &Call::o, false, true, false},
                                        {"d_o", &Call::d_o, false, true, false},
                                        {"dq", &Call::dq, false, false, true},
                                        {"dk", &Call::dk, true, false, true},
                                        {"dv", &Call::dv, true, true, true}}};

std::uint64_t element_bytes(const wavejit_tensor& tensor) { return tensor.dtype == WAVEJIT_FP32 ? 4 : 2; }

Result<void> check_layout(const Named& named) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "reserved"), std::to_string(t.reserved), "0"));
  const bool empty = t.sizes[1] == 0;
  if (reinterpret_cast<std::uintptr_t>(t.data) % tensor_alignment != 0 || (t.data == nullptr && !empty))
    return refuse(bad_pointer(named, tensor_alignment));
  if (empty) return {};
  for (int d = 0; d < 3; ++d)
    if (t.sizes[d] != 1 && (t.strides[d] <= 0 || t.strides[d] % stride_granule != 0))
      return refuse(bad_stride(named, d, "positive multiples of 8 elements (copy the tensor otherwise)"));
  if (t.sizes[3] != 1 && t.strides[3] != 1) return refuse(bad_stride(named, 3, "1 (copy the tensor otherwise)"));
  for (int d = 1; d < 3; ++d)
    if (t.sizes[d] > 1 && t.strides[d] >= max_slice_stride)
      return refuse(bad_stride(named, d, "batch slices that span less than 4 GiB"));
  const std::uint64_t bytes = element_bytes(t);
  const std::uint64_t rows = static_cast<std::uint64_t>(t.sizes[1]) - 1 + tile_overrun_rows;
  const std::uint64_t slice =
      ((rows * static_cast<std::uint64_t>(row_stride(t))) + static_cast<std::uint64_t>(t.sizes[3])) * bytes;
  if (slice >= slice_limit_bytes)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(named.name) + ": bytes that one head of one batch spans",
                      std::to_string(slice) + " with " + std::to_string(tile_overrun_rows) +
                          " rows of tile overrun (sizes[1] = " + std::to_string(t.sizes[1]) +
                          ", strides[1] = " + std::to_string(t.strides[1]) + ")",
                      "less than 4294967296 (4 GiB)"));
  if (t.sizes[0] > 1 && (t.strides[0] >= max_batch_stride || static_cast<std::uint64_t>(t.sizes[0] - 1) *
                                                                     static_cast<std::uint64_t>(t.strides[0]) * bytes >=
                                                                 tensor_limit_bytes))
    return refuse(bad_stride(named, 0, "tensors that span less than 2^48 bytes"));
  return {};
}

Result<void> check_type(const Role& role, const Call& call) {
  const Named named = {role.name, &(call.*role.tensor)};
  const std::int32_t dtype = named.tensor->dtype;
  if (!role.gradient) {
    if (dtype == call.q.dtype) return {};
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(dtype),
                      dtype_text(call.q.dtype) + ", the dtype of q"));
  }
  if (dtype != call.dq.dtype)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(dtype),
                      dtype_text(call.dq.dtype) + ", the dtype of dq"));
  if (dtype != call.q.dtype && dtype != WAVEJIT_FP32)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(dtype),
                      dtype_text(call.q.dtype) + ", the dtype of q, or " + dtype_text(WAVEJIT_FP32)));
  return {};
}

// LSE and its gradient.
Result<void> check_row_numbers(const Named& named, const wavejit_tensor& q) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "reserved"), std::to_string(t.reserved), "0"));
  if (t.dtype != WAVEJIT_FP32)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(t.dtype), dtype_text(WAVEJIT_FP32)));
  if (t.data == nullptr || reinterpret_cast<std::uintptr_t>(t.data) % 4 != 0) return refuse(bad_pointer(named, 4));
  const std::array<std::int64_t, 4> wanted = {q.sizes[0], q.sizes[2], q.sizes[1], 1};
  static constexpr std::array<const char*, 4> sources = {"q.sizes[0]", "q.sizes[2]", "q.sizes[1]", "always"};
  for (int d = 0; d < 4; ++d)
    if (t.sizes[d] != wanted[static_cast<std::size_t>(d)])
      return refuse(bad(
          WAVEJIT_INVALID_ARGUMENT, field(named, "sizes") + "[" + std::to_string(d) + "]", std::to_string(t.sizes[d]),
          std::to_string(wanted[static_cast<std::size_t>(d)]) + " (" + sources[static_cast<std::size_t>(d)] + ")"));
  if (t.sizes[2] > 1 && t.strides[2] != 1)
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides") + "[2] (length)", std::to_string(t.strides[2]), "1"));
  for (int d = 0; d < 2; ++d)
    if (t.sizes[d] != 1 && (t.strides[d] < 1 || t.strides[d] >= max_batch_stride ||
                            static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]) * 4 >=
                                tensor_limit_bytes))
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides") + "[" + std::to_string(d) + "]",
                        std::to_string(t.strides[d]), "positive, with a tensor that spans less than 2^48 bytes"));
  return {};
}

// An output shares memory with no input and no other output.
Result<void> check_outputs(const Call& call) {
  struct Part {
    const char* name;
    families::Range range;
  };
  std::array<Part, roles.size() + 2> parts{};
  std::size_t count = 0;
  for (const Role& role : roles) {
    const wavejit_tensor& tensor = call.*role.tensor;
    parts[count++] = {role.name, families::range_of(tensor, element_bytes(tensor))};
  }
  parts[count++] = {"lse", families::range_of(call.lse, 4)};
  if (call.d_lse.data != nullptr) parts[count++] = {"d_lse", families::range_of(call.d_lse, 4)};
  for (std::size_t output = 0; output < roles.size(); ++output) {
    const Role& role = roles[output];
    if (!role.gradient) continue;
    const Named named = {role.name, &(call.*role.tensor)};
    if (families::elements_overlap(*named.tensor, 3, static_cast<std::uint64_t>(named.tensor->sizes[3])))
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "strides"),
                        std::to_string(named.tensor->strides[0]) + ", " + std::to_string(named.tensor->strides[1]) +
                            ", " + std::to_string(named.tensor->strides[2]) + ", with which elements overlap",
                        "strides that pass what the dimensions inside them span"));
    for (std::size_t other = 0; other < count; ++other)
      if (other != output && families::surely_share(parts[output].range, parts[other].range))
        return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(role.name) + ".data", pointer_text(named.tensor->data),
                          std::string("memory that ") + parts[other].name + " does not use"));
  }
  return {};
}

}  // namespace

Result<void> check_tensors(const Call& call) {
  if (call.q.dtype != WAVEJIT_FP16 && call.q.dtype != WAVEJIT_BF16)
    return refuse(bad(call.q.dtype == WAVEJIT_FP32 ? WAVEJIT_UNSUPPORTED : WAVEJIT_INVALID_ARGUMENT, "q.dtype",
                      dtype_text(call.q.dtype), "1 (fp16), 2 (bf16)"));
  for (const Named& named : {Named{"q", &call.q}, Named{"k", &call.k}, Named{"v", &call.v}}) {
    const auto& sizes = named.tensor->sizes;
    const bool of_keys = named.tensor != &call.q;
    if (sizes[0] < 1 || sizes[0] > max_batch) return refuse(bad_size(named, 0, up_to("1", max_batch)));
    if (sizes[1] < (of_keys ? 0 : 1) || sizes[1] > max_length)
      return refuse(bad_size(named, 1, up_to(of_keys ? "0" : "1", max_length)));
    if (sizes[2] < 1 || sizes[2] > max_heads) return refuse(bad_size(named, 2, up_to("1", max_heads)));
    if (sizes[3] < 1 || sizes[3] > max_head_dim) return refuse(bad_size(named, 3, up_to("1", max_head_dim)));
  }
  return {};
}

Result<void> check_tensor_sizes(const Call& call, const Extents& extents) {
  const std::int64_t kv_batch = call.key_starts != nullptr ? 1 : extents.sequences;
  const Named k = {"k", &call.k};
  if (call.k.sizes[0] != kv_batch)
    return refuse(mismatch(k, 0, kv_batch, call.key_starts != nullptr ? "packed keys" : extents.sequences_from));
  if (call.q.sizes[2] % call.k.sizes[2] != 0)
    return refuse(bad_size(k, 2, "divisors of q.sizes[2] = " + std::to_string(call.q.sizes[2])));
  for (const Role& role : roles) {
    const Named named = {role.name, &(call.*role.tensor)};
    const wavejit_tensor& like = role.of_keys ? call.k : call.q;
    static constexpr std::array<const char*, 3> of_q = {"q.sizes[0]", "q.sizes[1]", "q.sizes[2]"};
    static constexpr std::array<const char*, 3> of_k = {"k.sizes[0]", "k.sizes[1]", "k.sizes[2]"};
    for (int d = 0; d < 3; ++d)
      if (named.tensor->sizes[d] != like.sizes[d])
        return refuse(mismatch(named, d, like.sizes[d], (role.of_keys ? of_k : of_q)[static_cast<std::size_t>(d)]));
    const wavejit_tensor& dims = role.of_values ? call.v : call.q;
    if (named.tensor->sizes[3] != dims.sizes[3])
      return refuse(mismatch(named, 3, dims.sizes[3], role.of_values ? "v.sizes[3]" : "q.sizes[3]"));
    if (auto type = check_type(role, call); !type) return type;
    if (auto layout = check_layout(named); !layout) return layout;
  }
  if (auto lse = check_row_numbers({"lse", &call.lse}, call.q); !lse) return lse;
  if (call.d_lse.data != nullptr)
    if (auto d_lse = check_row_numbers({"d_lse", &call.d_lse}, call.q); !d_lse) return d_lse;
  return check_outputs(call);
}

}  // namespace wavejit::attention_backward
