// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/call/problem.h"

#include <algorithm>
#include <string>
#include <utility>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/cache_scales.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention_merge {
namespace {

using attention::element_bytes_of;
using attention::wide_type_of;
using families::Range;
using families::range_of;
using families::refusal::bad_size;
using families::refusal::bad_stride;
using families::refusal::dtype_text;
using families::refusal::field;
using families::refusal::Named;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::refused;
using families::refusal::up_to;

using Check = Result<void>;
using Call = wavejit_attention_merge_arguments;

// What a kernel adds to a row's address inside it is 32 bits wide.
constexpr std::uint64_t row_limit_bytes = std::uint64_t{1} << 31U;
// Eight dims are one access, or two.
constexpr std::uintptr_t o_alignment = 16;
constexpr std::int64_t o_stride_granule = 8;
constexpr const char* types = "1 (fp16), 2 (bf16), 3 (fp32)";
constexpr const char* result_types = "1 (fp16), 2 (bf16), 3 (fp32), 4 (e4m3), 6 (e4m3_fnuz), 8 (int8)";

// Strides of whole granules, and rows that 32 bits reach.
Check check_strides(const Named& named, std::int64_t granule, int head_dimension) {
  const wavejit_tensor& t = *named.tensor;
  for (int d = 0; d < 3; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] < 1 || t.strides[d] % granule != 0 || t.strides[d] >= attention::max_batch_stride ||
        static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]) * element_bytes_of(t) >=
            attention::tensor_limit_bytes)
      return refuse(bad_stride(named, d,
                               (granule == 1 ? std::string("positive") : "positive multiples of 8") +
                                   ", with a tensor that spans less than 2^48 bytes"));
  }
  const int d = head_dimension;
  const std::int64_t heads = t.sizes[d] > 1 ? (t.sizes[d] - 1) * t.strides[d] : 0;
  if (static_cast<std::uint64_t>(heads + t.sizes[3]) * element_bytes_of(t) >= row_limit_bytes)
    return refuse(bad_stride(named, d, "rows of all heads of a token that span less than 2^31 bytes"));
  return {};
}

// O of a part, or of the result. `first`: whose sizes the others must have.
Check check_o(const Named& named, const wavejit_tensor& first, bool is_result = false) {
  const wavejit_tensor& t = *named.tensor;
  const std::optional<DataType> type = attention::type_of(t.dtype);
  const bool known =
      type && (is_result ? families::name_in(output_types, *type) != "?" : wide_type_of(t.dtype).has_value());
  if (!known) return refused(field(named, "dtype"), dtype_text(t.dtype), is_result ? result_types : types);
  if (named.tensor == &first) {
    const std::int64_t most[] = {max_batch, max_tokens, max_heads};
    for (int d = 0; d < 3; ++d)
      if (t.sizes[d] < 1 || t.sizes[d] > most[d]) return refuse(bad_size(named, d, up_to("1", most[d])));
    if (t.sizes[0] > max_tokens / t.sizes[1])
      return refuse(bad_size(named, 1, "at most 2^31 - 1 tokens in all batches"));
    if (t.sizes[3] < 1 || t.sizes[3] % dims_of_lane != 0 || t.sizes[3] > max_dims)
      return refuse(bad_size(named, 3, "multiples of 8 up to " + std::to_string(max_dims)));
  } else {
    for (int d = 0; d < 4; ++d)
      if (auto size = attention::check_size(named, d, first.sizes[d], "as of parts[0].o", false); !size) return size;
  }
  if (auto memory = attention::check_memory(named, o_alignment); !memory) return memory;
  if (t.strides[3] != 1) return refuse(bad_stride(named, 3, "1"));
  return check_strides(named, o_stride_granule, 2);
}

Check check_lse(const Named& named, const wavejit_tensor& first) {
  const wavejit_tensor& t = *named.tensor;
  if (auto kind = attention::check_kind(named, WAVEJIT_FP32, alignof(float)); !kind) return kind;
  if (t.data == nullptr) return refused(field(named, "data"), pointer_text(t.data), "fp32 in device memory");
  constexpr int of_o[] = {0, 2, 1};
  for (int d = 0; d < 3; ++d)
    if (auto size = attention::check_size(named, d, first.sizes[of_o[d]], "as of parts[0].o", false); !size)
      return size;
  if (auto one = attention::check_size(named, 3, 1, "always", false); !one) return one;
  return check_strides(named, 1, 1);
}

Check check_count(const wavejit_attention_part& part, const std::string& name) {
  if (part.count < 0 || part.count > max_parts)
    return refused(name + ".count", std::to_string(part.count), up_to("0", max_parts));
  if (part.count <= 1) return {};
  const auto most = static_cast<std::uint64_t>(attention::tensor_limit_bytes) / sizeof(float) / max_parts;
  if (part.o_stride < o_stride_granule || part.o_stride % o_stride_granule != 0 ||
      std::cmp_greater(part.o_stride, most))
    return refused(name + ".o_stride", std::to_string(part.o_stride), "positive multiples of 8, with count above 1");
  if (part.lse_stride < 1 || std::cmp_greater(part.lse_stride, most))
    return refused(name + ".lse_stride", std::to_string(part.lse_stride), "positive numbers, with count above 1");
  return {};
}

bool same_place(const wavejit_tensor& a, const wavejit_tensor& b) {
  if (a.data != b.data || a.dtype != b.dtype) return false;
  for (int d = 0; d < 3; ++d)
    if (a.sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

Range range_of_stack(const wavejit_tensor& t, std::int64_t count, std::int64_t stride) {
  Range range = range_of(t, element_bytes_of(t));
  if (count > 1) {
    range.end += static_cast<std::uint64_t>(count - 1) * static_cast<std::uint64_t>(stride) * element_bytes_of(t);
    range.dense = false;
  }
  return range;
}

// What is written shares memory with nothing else, but for a part that stands where the result does: every lane reads
// what it writes there before.
Check check_apart(const Call& call) {
  const Named outputs[] = {{"o", &call.o}, {"lse", &call.lse}};
  for (const Named& output : outputs) {
    const wavejit_tensor& t = *output.tensor;
    if (t.data == nullptr) continue;
    const bool of_o = output.tensor == &call.o;
    // LSE has no innermost dimension of its own.
    if (of_o ? families::elements_overlap(t, 3, static_cast<std::uint64_t>(t.sizes[3])) : families::elements_overlap(t))
      return refuse(attention::overlapping(output));
    const Range range = range_of(t, element_bytes_of(t));
    if (of_o && call.lse.data != nullptr)
      if (auto apart = attention::check_apart(output, range, "lse", range_of(call.lse, sizeof(float))); !apart)
        return apart;
    for (std::int32_t i = 0; i < call.part_count; ++i) {
      const wavejit_attention_part& part = call.parts[i];
      const std::string name = "parts[" + std::to_string(i) + "]";
      if (!(of_o && same_place(t, part.o)))
        if (auto apart = attention::check_apart(output, range, (name + ".o").c_str(),
                                                range_of_stack(part.o, part.count, part.o_stride));
            !apart)
          return apart;
      if (!(!of_o && same_place(t, part.lse)))
        if (auto apart = attention::check_apart(output, range, (name + ".lse").c_str(),
                                                range_of_stack(part.lse, part.count, part.lse_stride));
            !apart)
          return apart;
    }
  }
  return {};
}

Check check_parts(const Call& call) {
  if (call.part_count < 1 || std::cmp_greater(call.part_count, max_stacks))
    return refused("part_count", std::to_string(call.part_count), up_to("1", static_cast<std::int64_t>(max_stacks)));
  const wavejit_tensor& first = call.parts[0].o;
  for (std::int32_t i = 0; i < call.part_count; ++i) {
    const wavejit_attention_part& part = call.parts[i];
    const std::string name = "parts[" + std::to_string(i) + "]";
    const std::string o_name = name + ".o";
    const std::string lse_name = name + ".lse";
    if (auto good = check_o({o_name.c_str(), &part.o}, first); !good) return good;
    if (part.o.dtype != first.dtype)
      return refused(o_name + ".dtype", dtype_text(part.o.dtype), "that of parts[0].o, " + dtype_text(first.dtype));
    if (auto good = check_lse({lse_name.c_str(), &part.lse}, first); !good) return good;
    if (auto good = check_count(part, name); !good) return good;
  }
  return {};
}

Check check_all(const Call& call) {
  if (auto good = check_parts(call); !good) return good;
  const wavejit_tensor& first = call.parts[0].o;
  if (auto good = check_o({"o", &call.o}, first, true); !good) return good;
  const bool in_bytes = element_bytes_of(call.o) == 1;
  if (call.o.dtype != first.dtype && call.o.dtype != WAVEJIT_FP32 && first.dtype != WAVEJIT_FP32 && !in_bytes)
    return refused("o.dtype", dtype_text(call.o.dtype),
                   "that of the parts, " + dtype_text(first.dtype) + ", 3 (fp32), 4 (e4m3), 6 (e4m3_fnuz), 8 (int8)");
  if (call.lse.data != nullptr)
    if (auto good = check_lse({"lse", &call.lse}, first); !good) return good;
  if (auto good = attention::check_output_scale(call.output_scale, call.o, call.lse); !good) return good;
  if (auto good = check_apart(call); !good) return good;
  constexpr std::uint32_t known = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  if (auto good = attention::check_flags(call.head.flags, known, 0); !good) return good;
  return {};
}

}  // namespace

Result<MergeProblem> check(const Call* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_ATTENTION_MERGE, "attention_merge"); !head)
    return std::unexpected(std::move(head.error()));
  const Call& call = *arguments;
  if (auto good = check_all(call); !good) return std::unexpected(std::move(good.error()));
  const wavejit_tensor& first = call.parts[0].o;
  MergeProblem problem = {.shape = {{.parts = *wide_type_of(first.dtype), .out = *attention::type_of(call.o.dtype)}},
                          .batch = static_cast<std::uint32_t>(first.sizes[0]),
                          .tokens = static_cast<std::uint32_t>(first.sizes[1]),
                          .heads = static_cast<std::uint32_t>(first.sizes[2]),
                          .dims = static_cast<std::uint32_t>(first.sizes[3])};
  for (std::int32_t i = 0; i < call.part_count; ++i) problem.parts += std::max<std::int64_t>(call.parts[i].count, 1);
  return problem;
}

Result<void> fits_waves(std::int64_t dims, const targets::Target& target) {
  const std::int64_t most = std::int64_t{dims_of_lane} * target.wave_size;
  if (dims <= most) return {};
  return fail(WAVEJIT_UNSUPPORTED, "attention_merge of " + std::to_string(dims) +
                                       " dims has no kernel where waves have " + std::to_string(target.wave_size) +
                                       " lanes, as on " + std::string(target.id) + "; accepted: up to " +
                                       std::to_string(most));
}

}  // namespace wavejit::attention_merge
