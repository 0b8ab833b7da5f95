// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/call/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/paging.h"
#include "templates/attention/call/tensors.h"
#include "templates/cache_append/call/scales.h"

namespace wavejit::cache_append {
namespace {

using attention::element_bytes_of;
using attention::type_of;
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

// What a kernel adds to a row's address inside it is 32 bits wide.
constexpr std::uint64_t row_limit_bytes = std::uint64_t{1} << 31U;
// Where eight dims stand side by side, an access of them begins at a whole dword.
constexpr std::int64_t access_granule_bytes = 4;

std::int64_t stride(const wavejit_tensor& t, int dimension) {
  return t.sizes[dimension] > 1 ? t.strides[dimension] : 0;
}

// Sizes, memory and strides of what is read or written; the types are known.
Check check_rows(const Named& named, bool dims_are_grouped) {
  const wavejit_tensor& t = *named.tensor;
  if (t.sizes[2] < 1 || t.sizes[2] > max_heads) return refuse(bad_size(named, 2, up_to("1", max_heads)));
  if (t.sizes[3] < 1 || t.sizes[3] % dims_of_lane != 0 || t.sizes[3] > max_dims)
    return refuse(bad_size(named, 3, "multiples of 8 up to " + std::to_string(max_dims)));
  if (auto memory = attention::check_memory(named, element_bytes_of(t)); !memory) return memory;
  for (int d = 0; d < 4; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] < 1 || t.strides[d] >= attention::max_batch_stride ||
        static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]) * element_bytes_of(t) >=
            attention::tensor_limit_bytes)
      return refuse(bad_stride(named, d, "positive, with a tensor that spans less than 2^48 bytes"));
  }
  // Dims of a vectorised page stand in groups, whose distance is that of a whole page.
  const std::int64_t dim_stride = dims_are_grouped ? t.sizes[1] * dims_of_lane : stride(t, 3);
  const std::int64_t row = (stride(t, 2) * (t.sizes[2] - 1)) + (dim_stride * (t.sizes[3] - 1)) + dims_of_lane;
  if (static_cast<std::uint64_t>(row) * element_bytes_of(t) >= row_limit_bytes)
    return refuse(
        bad_stride(named, t.sizes[2] > 1 ? 2 : 3, "rows of all heads of a token that span less than 2^31 bytes"));
  return {};
}

Check check_source(const Named& named, const wavejit_cache_append_arguments& call) {
  const wavejit_tensor& t = *named.tensor;
  if (t.dtype != call.k.dtype || (t.dtype != WAVEJIT_FP16 && t.dtype != WAVEJIT_BF16))
    return refused(field(named, "dtype"), dtype_text(t.dtype),
                   named.tensor == &call.k ? "1 (fp16), 2 (bf16)" : "that of k, " + dtype_text(call.k.dtype));
  for (int d = 0; d < 2; ++d) {
    const std::int64_t most = d == 0 ? max_batch : max_slots;
    if (named.tensor == &call.k && (t.sizes[d] < 1 || t.sizes[d] > most))
      return refuse(bad_size(named, d, up_to("1", most)));
    if (auto size = attention::check_size(named, d, call.k.sizes[d], "as of k", false); !size) return size;
  }
  return check_rows(named, false);
}

// Checks a cache in vectorised pages: strides as wavejit_attention_forward has them.
Check check_vectorised(const Named& named, bool keys, std::int32_t layout) {
  const wavejit_tensor& t = *named.tensor;
  const std::int64_t page = t.sizes[1];
  if (page % attention::page_granule != 0) return refuse(bad_size(named, 1, "multiples of 16 in vectorised pages"));
  const std::int64_t key_stride = keys ? dims_of_lane : 1;
  const std::int64_t dim_stride = keys ? 1 : layout == WAVEJIT_PAGES_VECTORISED ? page : dims_of_lane;
  if (t.strides[1] != key_stride) return refuse(bad_stride(named, 1, std::to_string(key_stride)));
  if (t.strides[3] != dim_stride) return refuse(bad_stride(named, 3, std::to_string(dim_stride)));
  const std::int64_t head = page * t.sizes[3];
  for (const int d : {0, 2})
    if (t.sizes[d] > 1 && t.strides[d] < head)
      return refuse(bad_stride(named, d, std::to_string(head) + " and more, which a head takes of a page"));
  if (t.sizes[0] > 1 && t.sizes[2] > 1) {
    const std::int64_t least = std::min(t.strides[0], t.strides[2]);
    const std::int64_t most = std::max(t.strides[0], t.strides[2]);
    const std::int64_t inner = (t.strides[0] < t.strides[2] ? t.sizes[0] : t.sizes[2]) * least;
    if (most + least - head < inner) return refuse(bad_stride(named, 0, "pages and heads that do not overlap"));
  }
  return {};
}

Check check_cache(const Named& named, const Named& source, const wavejit_cache_append_arguments& call, bool keys) {
  const wavejit_tensor& t = *named.tensor;
  const wavejit_tensor& pages = call.k_cache;
  if (keys) {
    const auto type = type_of(t.dtype);
    if (t.dtype != call.k.dtype && !(type && is_narrow(*type)))
      return refused(field(named, "dtype"), dtype_text(t.dtype),
                     "that of k, " + dtype_text(call.k.dtype) + ", and types of 8 bits",
                     type ? WAVEJIT_UNSUPPORTED : WAVEJIT_INVALID_ARGUMENT);
    if (t.sizes[0] < 1) return refuse(bad_size(named, 0, "1 and more"));
    if (t.sizes[1] < 1 || t.sizes[1] > max_slots || t.sizes[0] > max_slots / t.sizes[1])
      return refuse(bad_size(named, 1, "1 and more, with at most 2^31 - 1 keys in all pages"));
    if (const Scales rows = rows_of(call); rows != Scales::none) return check_latent_rows(call, rows);
  } else if (t.dtype != pages.dtype) {
    return refused(field(named, "dtype"), dtype_text(t.dtype), "that of k_cache, " + dtype_text(pages.dtype));
  }
  for (int d = 0; d < 2; ++d)
    if (auto size = attention::check_size(named, d, pages.sizes[d], "as of k_cache", false); !size) return size;
  for (int d = 2; d < 4; ++d)
    if (auto size = attention::check_size(named, d, source.tensor->sizes[d], keys ? "as of k" : "as of v", false);
        !size)
      return size;
  const bool vectorised = call.page_layout != WAVEJIT_PAGES_OF_ROWS;
  if (auto rows = check_rows(named, vectorised && keys); !rows) return rows;
  if (vectorised) return check_vectorised(named, keys, call.page_layout);
  if (families::elements_overlap(t)) return refuse(attention::overlapping(named));
  return {};
}

Check check_width(const char* name, std::int32_t bytes) {
  if (bytes == 0 || bytes == 4 || bytes == 8) return {};
  return refused(std::string(name) + "_bytes", std::to_string(bytes), "0, 4, 8");
}

Check check_number_bytes(const char* name, std::int32_t bytes, const void* numbers) {
  if (auto width = check_width(name, bytes); !width) return width;
  const std::uintptr_t alignment = bytes == 8 ? 8 : 4;
  if (numbers == nullptr || reinterpret_cast<std::uintptr_t>(numbers) % alignment != 0)
    return refused(std::string(name) + "s", pointer_text(numbers),
                   "device memory aligned to " + std::to_string(alignment) + " bytes");
  return {};
}

// Cosines or sines.
Check check_table(const Named& named, const wavejit_cache_append_arguments& call) {
  const wavejit_tensor& t = *named.tensor;
  if (t.dtype != call.cos.dtype || !attention::wide_type_of(t.dtype))
    return refused(
        field(named, "dtype"), dtype_text(t.dtype),
        named.tensor == &call.cos ? "1 (fp16), 2 (bf16), 3 (fp32)" : "that of cos, " + dtype_text(call.cos.dtype));
  if (auto memory = attention::check_memory(named, access_granule_bytes); !memory) return memory;
  for (const int d : {0, 2})
    if (t.sizes[d] != 1) return refuse(bad_size(named, d, "1"));
  if (t.sizes[1] < 1 || t.sizes[1] > max_slots) return refuse(bad_size(named, 1, up_to("1", max_slots)));
  if (t.sizes[1] != call.cos.sizes[1])
    return refuse(bad_size(named, 1, std::to_string(call.cos.sizes[1]) + " (as of cos)"));
  if (t.sizes[3] != call.rotary_dim / 2)
    return refuse(bad_size(named, 3, std::to_string(call.rotary_dim / 2) + " (rotary_dim / 2)"));
  if (t.strides[3] != 1) return refuse(bad_stride(named, 3, "1"));
  const auto bytes = static_cast<std::int64_t>(element_bytes_of(t));
  if (t.sizes[1] > 1 && (t.strides[1] < t.sizes[3] || t.strides[1] * bytes % access_granule_bytes != 0 ||
                         t.strides[1] >= attention::max_slice_stride))
    return refuse(bad_stride(named, 1, std::to_string(t.sizes[3]) + " and more, below 2^31, whole dwords"));
  return {};
}

Check check_rotary(const wavejit_cache_append_arguments& call) {
  if (call.rotary < WAVEJIT_ROTARY_NONE || call.rotary > WAVEJIT_ROTARY_INTERLEAVED)
    return refused("rotary", std::to_string(call.rotary), "0 (none), 1 (halves), 2 (interleaved)");
  const bool tables = call.cos.data != nullptr || call.sin.data != nullptr;
  if (call.rotary == WAVEJIT_ROTARY_NONE) {
    if (call.rotary_dim != 0) return refused("rotary_dim", std::to_string(call.rotary_dim), "0 without rotary");
    if (tables || call.rotary_base != 0 || call.positions != nullptr)
      return refused("rotary", "0", "1 or 2 beside cos, sin, rotary_base and positions");
    if (call.q.data != nullptr) return refused("q.data", pointer_text(call.q.data), "null without rotary");
    return check_width("position", call.position_bytes);
  }
  if (call.rotary_dim < rotary_granule || call.rotary_dim % rotary_granule != 0 || call.rotary_dim > max_rotary_dims ||
      call.rotary_dim > call.k.sizes[3] || (call.q.data != nullptr && call.rotary_dim > call.q.sizes[3]))
    return refused("rotary_dim", std::to_string(call.rotary_dim),
                   "multiples of 16 up to " + std::to_string(max_rotary_dims) + " and up to the head dim");
  if (auto numbers = check_number_bytes("position", call.position_bytes, call.positions); !numbers) return numbers;
  if (!tables) {
    if (!(call.rotary_base > 1) || !std::isfinite(call.rotary_base))
      return refused("rotary_base", std::to_string(call.rotary_base), "a number above 1, or cos and sin");
    return {};
  }
  if (call.rotary_base != 0) return refused("rotary_base", std::to_string(call.rotary_base), "0 beside cos and sin");
  if (auto table = check_table({"cos", &call.cos}, call); !table) return table;
  return check_table({"sin", &call.sin}, call);
}

Check check_queries(const wavejit_cache_append_arguments& call) {
  if (call.q.data == nullptr) {
    if (call.q_out.data != nullptr) return refused("q_out.data", pointer_text(call.q_out.data), "null without q");
    return {};
  }
  const Named q = {"q", &call.q};
  const Named out = {"q_out", &call.q_out};
  if (auto source = check_source(q, call); !source) return source;
  if (auto target = check_source(out, call); !target) return target;
  for (int d = 2; d < 4; ++d)
    if (auto size = attention::check_size(out, d, call.q.sizes[d], "as of q", false); !size) return size;
  if (families::elements_overlap(call.q_out)) return refuse(attention::overlapping(out));
  if (call.q_out.data != call.q.data) {
    const std::uint64_t bytes = element_bytes_of(call.q);
    return attention::check_apart(out, range_of(call.q_out, bytes), "q", range_of(call.q, bytes));
  }
  for (int d = 0; d < 4; ++d)
    if (stride(call.q, d) != stride(call.q_out, d)) return refuse(bad_stride(out, d, "that of q, whose memory it has"));
  return {};
}

// As many numbers as tokens, side by side.
families::Range range_of_numbers(const void* numbers, std::int32_t bytes_of_one,
                                 const wavejit_cache_append_arguments& call) {
  const auto tokens = static_cast<std::uint64_t>(call.k.sizes[0]) * static_cast<std::uint64_t>(call.k.sizes[1]);
  const auto begin = reinterpret_cast<std::uintptr_t>(numbers);
  return {.begin = begin, .end = begin + (tokens * (bytes_of_one == 8 ? 8 : 4)), .dense = true};
}

// What is written beside what is written or read, but for q_out over q.
Check check_apart(const wavejit_cache_append_arguments& call) {
  const wavejit_tensor none{};
  const bool found = call.scales.token_scales != 0;
  // Strides of vectorised pages do not say where their dims stand: a head of a page is one row.
  const bool vectorised = call.page_layout != WAVEJIT_PAGES_OF_ROWS;
  const wavejit_tensor k_cache = vectorised ? attention::in_one_row(call.k_cache) : call.k_cache;
  const wavejit_tensor v_cache =
      vectorised && call.v_cache.data != nullptr ? attention::in_one_row(call.v_cache) : call.v_cache;
  const Named written[] = {{"k_cache", &k_cache},
                           {"v_cache", &v_cache},
                           {"q_out", &call.q_out},
                           {"k_scale", found ? &call.scales.k_scale : &none},
                           {"v_scale", found ? &call.scales.v_scale : &none}};
  const Named all[] = {{"k", &call.k},
                       {"v", &call.v},
                       {"q", &call.q},
                       {"cos", &call.cos},
                       {"sin", &call.sin},
                       {"k_cache", &k_cache},
                       {"v_cache", &v_cache},
                       {"k_scale", &call.scales.k_scale},
                       {"v_scale", &call.scales.v_scale}};
  for (const Named& output : written) {
    if (output.tensor->data == nullptr) continue;
    const families::Range own = range_of(*output.tensor, element_bytes_of(*output.tensor));
    for (const Named& other : all) {
      if (other.tensor->data == nullptr || other.tensor == output.tensor) continue;
      if (output.tensor == &call.q_out && other.tensor == &call.q) continue;
      if (auto apart =
              attention::check_apart(output, own, other.name, range_of(*other.tensor, element_bytes_of(*other.tensor)));
          !apart)
        return apart;
    }
    for (const auto& [name, numbers, bytes] :
         {std::tuple{"slots", call.slots, call.slot_bytes}, {"positions", call.positions, call.position_bytes}})
      if (numbers != nullptr)
        if (auto apart = attention::check_apart(output, own, name, range_of_numbers(numbers, bytes, call)); !apart)
          return apart;
  }
  return {};
}

Check check_all(const wavejit_cache_append_arguments& call) {
  const Named k = {"k", &call.k};
  const Named v = {"v", &call.v};
  if (call.page_layout < WAVEJIT_PAGES_OF_ROWS || call.page_layout > WAVEJIT_PAGES_VECTORISED_KEYS)
    return refused("page_layout", std::to_string(call.page_layout), "0, 1, 2");
  Check step = check_source(k, call);
  if (step && call.k.sizes[0] > max_slots / call.k.sizes[1])
    step = refuse(bad_size(k, 1, "at most 2^31 - 1 tokens in all batches"));
  const bool values = call.v.data != nullptr;
  if (step && !values && call.v_cache.data != nullptr)
    step = refused("v_cache.data", pointer_text(call.v_cache.data), "null without v");
  if (step && values) step = check_source(v, call);
  if (step && values) step = attention::check_size(v, 2, call.k.sizes[2], "as of k", false);
  if (step) step = check_cache({"k_cache", &call.k_cache}, k, call, true);
  if (step && values && rows_of(call) == Scales::none) step = check_cache({"v_cache", &call.v_cache}, v, call, false);
  if (step) step = check_scales(call);
  if (step) step = check_rotary(call);
  if (step) step = check_queries(call);
  if (step) step = check_number_bytes("slot", call.slot_bytes, call.slots);
  if (step) step = check_apart(call);
  constexpr std::uint32_t known = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  if (step) step = attention::check_flags(call.head.flags, known, 0);
  return step;
}

// Whether eight dims of a row are one access.
Access access_of(const wavejit_tensor& t) {
  const auto bytes = static_cast<std::int64_t>(element_bytes_of(t));
  bool whole = stride(t, 3) == 1 && reinterpret_cast<std::uintptr_t>(t.data) % access_granule_bytes == 0;
  for (int d = 0; d < 3; ++d) whole = whole && stride(t, d) * bytes % access_granule_bytes == 0;
  return whole ? Access::vectors : Access::elements;
}

Angles angles_of(const wavejit_cache_append_arguments& call) {
  if (call.rotary == WAVEJIT_ROTARY_NONE) return Angles::none;
  if (call.cos.data == nullptr) return Angles::base;
  return call.cos.dtype == WAVEJIT_FP32 ? Angles::fp32 : call.cos.dtype == WAVEJIT_FP16 ? Angles::fp16 : Angles::bf16;
}

// What the parts have and this family has not.
constexpr std::array absent_fields = {
    families::AbsentField{"q_scale.data", offsetof(wavejit_cache_append_arguments, scales.q_scale), 8},
    families::AbsentField{"row_scales", offsetof(wavejit_cache_append_arguments, scales.row_scales), 4},
};

}  // namespace

Result<AppendProblem> check(const wavejit_cache_append_arguments* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_CACHE_APPEND, "cache_append", absent_fields); !head)
    return std::unexpected(std::move(head.error()));
  const wavejit_cache_append_arguments& call = *arguments;
  if (auto good = check_all(call); !good) return std::unexpected(std::move(good.error()));
  const bool values = call.v.data != nullptr;
  const bool queries = call.q.data != nullptr;
  const Scales scales = scales_of(call);
  const auto both = [](Access a, Access b) { return a == Access::vectors ? b : a; };
  Access source = access_of(call.k);
  if (values) source = both(source, access_of(call.v));
  if (queries) source = both(source, access_of(call.q));
  return AppendProblem{
      .shape = {{.source = *type_of(call.k.dtype),
                 .cache = *type_of(call.k_cache.dtype),
                 .source_access = source,
                 .key_access = in_rows(scales) ? Access::vectors : access_of(call.k_cache),
                 .value_access = values && !in_rows(scales) ? access_of(call.v_cache) : Access::vectors,
                 .rotary = static_cast<Rotary>(call.rotary),
                 .angles = angles_of(call),
                 .queries = queries ? access_of(call.q_out) : Access::none,
                 .scales = scales}},
      .batch = static_cast<std::uint32_t>(call.k.sizes[0]),
      .tokens = static_cast<std::uint32_t>(call.k.sizes[1]),
      .page_size = static_cast<std::uint32_t>(call.k_cache.sizes[1]),
      .slots = static_cast<std::uint32_t>(call.k_cache.sizes[0] * call.k_cache.sizes[1]),
      .values = values,
      .widest_head = std::max({call.k.sizes[3], values ? call.v.sizes[3] : 0, queries ? call.q.sizes[3] : 0})};
}

Result<void> fits_waves(std::int64_t dims, const targets::Target& target) {
  const std::int64_t most = std::int64_t{dims_of_lane} * target.wave_size;
  if (dims <= most) return {};
  return fail(WAVEJIT_UNSUPPORTED, "cache_append of " + std::to_string(dims) + " dims has no kernel where waves have " +
                                       std::to_string(target.wave_size) + " lanes, as on " + std::string(target.id) +
                                       "; accepted: up to " + std::to_string(most));
}

}  // namespace wavejit::cache_append
