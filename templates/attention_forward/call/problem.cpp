// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/cache_scales.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/device_lengths.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/call/checks.h"
#include "templates/attention_forward/call/key_lists.h"
#include "templates/attention_forward/call/walks/lists.h"
#include "templates/attention_forward/kernel/head_dims.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using families::Range;
using families::range_of;
using refusal::bad;
using refusal::bad_size;
using refusal::dtype_text;
using refusal::mismatch;
using refusal::refuse;

using Check = Result<void>;

bool is_narrow_type(std::int32_t dtype) {
  const std::optional<DataType> type = attention::type_of(dtype);
  return type && is_narrow(*type);
}

// What outputs may not share memory with.
struct NamedRange {
  const char* name;
  Range range;
};

Check check_all_apart(const Named& output, const Range& range, std::initializer_list<NamedRange> others) {
  for (const NamedRange& other : others)
    if (auto apart = check_apart(output, range, other.name, other.range); !apart) return apart;
  return {};
}

Check check_outputs(const wavejit_attention_forward_arguments& a, const wavejit_tensor& keys,
                    const wavejit_tensor& values, bool lse, bool scattered) {
  const Named o = {"o", &a.o};
  const Named l = {"lse", &a.lse};
  if (scattered) [[unlikely]] {
    if (families::elements_overlap(a.o)) return refuse(attention::overlapping(o));
  } else if (auto apart = check_no_overlap(o, 3, static_cast<std::uint64_t>(a.o.sizes[3])); !apart) {
    return apart;
  }
  const NamedRange of_q = {"q", range_of(a.q, element_bytes_of(a.q))};
  const NamedRange of_k = {"k", range_of(keys, element_bytes_of(keys))};
  const NamedRange of_v = {"v", range_of(values, element_bytes_of(values))};
  const NamedRange of_o = {"o", range_of(a.o, element_bytes_of(a.o))};
  if (auto apart = check_all_apart(o, of_o.range, {of_q, of_k, of_v}); !apart) return apart;
  if (!lse) return {};
  if (auto apart = check_no_overlap(l, 2, static_cast<std::uint64_t>(a.lse.sizes[2])); !apart) return apart;
  return check_all_apart(l, range_of(a.lse, sizeof(float)), {of_q, of_k, of_v, of_o});
}

// Outputs, and what changes scores.
Check check_apart_from_modifiers(const wavejit_attention_forward_arguments& a, bool lse) {
  for (const Named& other : {Named{"bias", &a.modifiers.bias}, Named{"alibi", &a.modifiers.alibi},
                             Named{"sink", &a.modifiers.sink}, Named{"bool_mask", &a.modifiers.bool_mask}}) {
    if (other.tensor->data == nullptr) [[likely]]
      continue;
    const Range taken = range_of(*other.tensor, element_bytes_of(*other.tensor));
    if (auto apart = check_apart({"o", &a.o}, range_of(a.o, element_bytes_of(a.o)), other.name, taken); !apart)
      return apart;
    if (lse)
      if (auto apart = check_apart({"lse", &a.lse}, range_of(a.lse, sizeof(float)), other.name, taken); !apart)
        return apart;
  }
  return {};
}

// The type of products where Q is f32.
std::int32_t type_of_products(const wavejit_attention_forward_arguments& call) {
  if (!is_narrow_type(call.k.dtype)) return call.k.dtype;
  return call.o.dtype == WAVEJIT_FP16 ? std::int32_t{WAVEJIT_FP16} : std::int32_t{WAVEJIT_BF16};
}

// Which sequences have a diagonal, in device memory.
Check check_causal_flags(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  if (call.mask.causal_flags == nullptr) [[likely]]
    return {};
  if (problem.shape.mask != Mask::causal || (call.mask.bits & WAVEJIT_MASK_WINDOW) != 0)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "mask", std::to_string(call.mask.bits),
                      "1 (causal), alone or with 4 (prefix), beside causal_flags"));
  problem.shape.causal_flags = true;
  return {};
}

// A field that is zero means the default.
float default_scale(const wavejit_attention_forward_arguments& call) {
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
  const std::uint64_t heads =
      call.modifiers.bias.sizes[1] > 1 ? others * static_cast<std::uint64_t>(call.modifiers.bias.strides[1]) : 0;
  const std::uint64_t rows = call.modifiers.bias.sizes[2] > 1
                                 ? problem.query_length * static_cast<std::uint64_t>(call.modifiers.bias.strides[2])
                                 : 0;
  return heads + rows + problem.key_length + tile_overrun_rows < limit / element_bytes_of(call.modifiers.bias);
}

// What the parts have and this family has not.
constexpr std::array absent_fields = {
    families::AbsentField{"row_scales", offsetof(wavejit_attention_forward_arguments, scales.row_scales), 4},
};

// The types of a call's tensors, as kernels are asked for.
struct CallTypes {
  bool integers = false;                        // Q and K in int8: V gives the type
  bool narrow_queries = false;                  // Q, K and V in e4m3
  bool query_fp32 = false;                      // Q is rounded to the type of K and V, and beside 8 bits to that of O
  bool narrow = false;                          // a cache of 8 bits
  std::int32_t products = 0;                    // the type that is multiplied
  std::int32_t output = 0;                      // O's, unless it is fp32 or 8 bits
  OutputType stored = OutputType::as_products;  // those
  std::int32_t o = 0;                           // O's in memory, unless it is fp32
};

// By the number of o.dtype.
constexpr std::array outputs = [] {
  std::array<OutputType, attention::most_types> all{};
  for (std::size_t type = 0; type < all.size(); ++type)
    all[type] = attention::output_type_of(attention::type_of(static_cast<std::int32_t>(type)).value_or(DataType::bf16));
  return all;
}();

Check check_types(const wavejit_attention_forward_arguments& a, CallTypes& types) {
  types.integers = a.q.dtype == WAVEJIT_INT8;
  types.narrow_queries = a.q.dtype == WAVEJIT_E4M3;
  types.query_fp32 = a.q.dtype == WAVEJIT_FP32;
  types.narrow = !types.integers && is_narrow_type(a.k.dtype);
  const std::int32_t dtype = types.integers ? a.v.dtype : types.query_fp32 ? type_of_products(a) : a.q.dtype;
  types.products = dtype;
  const bool wide_output = a.o.dtype == WAVEJIT_FP16 || a.o.dtype == WAVEJIT_BF16;
  types.output = !types.narrow_queries ? dtype : wide_output ? a.o.dtype : std::int32_t{WAVEJIT_BF16};
  types.stored = outputs[static_cast<std::uint32_t>(a.o.dtype) % attention::most_types];
  types.o = is_narrow(type_in(types.stored, DataType::bf16)) ? a.o.dtype : types.output;
  const bool wrong_o = a.o.dtype == WAVEJIT_E5M2 || a.o.dtype == WAVEJIT_E5M2_FNUZ;
  if (wrong_o) [[unlikely]]
    return refuse(bad(WAVEJIT_UNSUPPORTED, "o.dtype", dtype_text(a.o.dtype),
                      dtype_text(types.output) + ", 3 (fp32), 4 (e4m3), 6 (e4m3_fnuz), 8 (int8)"));
  if (dtype == WAVEJIT_FP16 || dtype == WAVEJIT_BF16 || types.narrow_queries) return {};
  const bool known = types.query_fp32 || dtype == WAVEJIT_FP32 || dtype == WAVEJIT_E4M3_FNUZ;
  return refuse(bad(known ? WAVEJIT_UNSUPPORTED : WAVEJIT_INVALID_ARGUMENT, types.integers ? "v.dtype" : "q.dtype",
                    dtype_text(types.query_fp32 ? std::int32_t{WAVEJIT_FP32} : dtype),
                    types.integers
                        ? "1 (fp16), 2 (bf16) beside q of 8 (int8)"
                        : "1 (fp16), 2 (bf16), 3 (fp32) beside k and v of 16 or 8 bits, 4 (e4m3) beside k and v "
                          "of e4m3, 8 (int8) beside k of int8"));
}

// Sizes against each other, which sequences there are, and how long.
Check check_shapes(const wavejit_attention_forward_arguments& a, Extents& extents) {
  const Named q = {"q", &a.q};
  const Named k = {"k", &a.k};
  const Named v = {"v", &a.v};
  const Named o = {"o", &a.o};
  const bool by_pages = is_paged(a) || names_slots(a);
  for (const Named& named : {q, k, v, o}) {
    const bool of_keys = named.tensor == &a.k || named.tensor == &a.v;
    if (auto sizes = check_sizes(named, of_keys, of_keys && by_pages ? max_pages : max_batch); !sizes) return sizes;
  }
  if (says_of_key_lists(a)) [[unlikely]] {
    if (auto lists = check_key_list_fields(a); !lists) return lists;
  }
  if (auto sequences = check_sequences(a.q, a.k, a.sequences, a.pages, extents); !sequences) return sequences;
  const bool packed = a.sequences.key_starts != nullptr;
  const std::int64_t kv_batch = by_pages ? a.k.sizes[0] : packed ? 1 : extents.sequences;
  const char* kv_batch_from = by_pages ? "k.sizes[0]" : packed ? "packed keys" : extents.sequences_from;
  if (a.k.sizes[0] != kv_batch) return refuse(mismatch(k, 0, kv_batch, kv_batch_from));
  if (a.k.sizes[3] != a.q.sizes[3]) return refuse(mismatch(k, 3, a.q.sizes[3], "q.sizes[3]"));
  if (a.v.sizes[0] != kv_batch) return refuse(mismatch(v, 0, kv_batch, kv_batch_from));
  if (a.v.sizes[1] != a.k.sizes[1]) return refuse(mismatch(v, 1, a.k.sizes[1], "k.sizes[1]"));
  if (a.v.sizes[2] != a.k.sizes[2]) return refuse(mismatch(v, 2, a.k.sizes[2], "k.sizes[2]"));
  if (a.o.sizes[0] != a.q.sizes[0]) return refuse(mismatch(o, 0, a.q.sizes[0], "q.sizes[0]"));
  if (a.o.sizes[1] != a.q.sizes[1]) return refuse(mismatch(o, 1, a.q.sizes[1], "q.sizes[1]"));
  if (a.o.sizes[2] != a.q.sizes[2]) return refuse(mismatch(o, 2, a.q.sizes[2], "q.sizes[2]"));
  if (a.o.sizes[3] != a.v.sizes[3]) return refuse(mismatch(o, 3, a.v.sizes[3], "v.sizes[3]"));
  if (a.q.sizes[2] % a.k.sizes[2] != 0)
    return refuse(bad_size(k, 2, "divisors of q.sizes[2] = " + std::to_string(a.q.sizes[2])));
  return {};
}

// Where no kernel takes a tensor's elements one by one.
[[gnu::cold]] families::Failure must_be_rows(const Named& named, const std::string& beside) {
  const wavejit_tensor& t = *named.tensor;
  const std::int64_t granule = attention::granule_of(t);
  int wrong = 3;
  for (int d = 0; d < 3; ++d)
    if (t.strides[3] == 1 && t.sizes[d] != 1 && t.strides[d] % granule != 0) wrong = d;
  return bad(WAVEJIT_UNSUPPORTED, std::string(named.name) + ".strides[" + std::to_string(wrong) + "]",
             std::to_string(t.strides[wrong]),
             (wrong == 3 ? std::string("1") : "multiples of " + std::to_string(granule) + ", by space behind rows,") +
                 " beside " + beside);
}
// Tiles that pad, and O in 8 bits, whose dims are stored four at a time.
Check check_scattered_rows(const Named& named, const HeadDims& dims, bool is_output) {
  if (is_output && is_narrow_type(named.tensor->dtype)) return refuse(must_be_rows(named, "o in 8 bits"));
  if (has_head_dims(dims) && is_padded(dims))
    return refuse(must_be_rows(named, "head dim " + to_text(dims) + ", which tiles pad"));
  return {};
}

// How a call's rows lie. K and V of vectorised pages: a head of a page as one row, since nothing stands between its
// elements.
struct CallRows {
  std::array<wavejit_tensor, 2> flat;
  std::array<bool, 4> scattered{};  // q, k, v, o
};

Check check_rows(const wavejit_attention_forward_arguments& a, const CallTypes& types, const Extents& extents,
                 CallRows& rows) {
  if (types.narrow_queries && a.k.dtype != a.q.dtype)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "k.dtype", dtype_text(a.k.dtype),
                      dtype_text(a.q.dtype) + ", the type of q: a product has one format"));
  const bool vectorised = a.pages.page_layout != WAVEJIT_PAGES_OF_ROWS;
  if (vectorised) [[unlikely]] {
    if (auto layout = check_page_layout(a.k, a.v, a.pages, a.sequences.first_keys != nullptr); !layout) return layout;
    rows.flat = {in_one_row(a.k), in_one_row(a.v)};
  }
  const wavejit_tensor& keys = vectorised ? rows.flat[0] : a.k;
  const wavejit_tensor& values = vectorised ? rows.flat[1] : a.v;
  // What finds its rows one by one, or in units, moves whole ones.
  const bool may_be_scattered =
      !is_paged(a) && !names_slots(a) && !types.narrow && !has_lists(a) && a.key_list.indices == nullptr;
  const std::array<Named, 4> tensors = {{{"q", &a.q}, {"k", &keys}, {"v", &values}, {"o", &a.o}}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Named& named = tensors[i];
    rows.scattered[i] = may_be_scattered && attention::is_scattered(*named.tensor);
    const bool of_keys = named.tensor == &keys || named.tensor == &values;
    const bool is_integer = types.integers && (named.tensor == &a.q || named.tensor == &keys);
    const bool as_given = is_integer || (types.query_fp32 && named.tensor == &a.q);
    const TensorRules rules = {.dtype = as_given                  ? a.q.dtype
                                        : of_keys && types.narrow ? a.k.dtype
                                        : named.tensor == &a.o    ? types.o
                                                                  : types.products,
                               .may_be_fp32 = named.tensor == &a.o,
                               .head_dims = all_head_dims(),
                               .longest = attention::longest_of_packed(
                                   extents, of_keys ? a.sequences.key_starts : a.sequences.query_starts, of_keys),
                               .may_be_scattered = may_be_scattered,
                               .scattered = rows.scattered[i],
                               .read_only = named.tensor != &a.o};
    if (auto tensor = check_tensor(named, rules); !tensor) return tensor;
    if (rows.scattered[i]) [[unlikely]] {
      const HeadDims dims = {.qk = static_cast<int>(a.q.sizes[3]), .v = static_cast<int>(a.v.sizes[3])};
      if (auto whole = check_scattered_rows(named, dims, named.tensor == &a.o); !whole) return whole;
    }
  }
  if (auto dims = attention::check_head_dims(a.q, a.v); !dims) return dims;
  if (is_paged(a)) [[unlikely]] {
    if (auto pages = check_pages(a.k, a.v, a.pages, extents.key_length); !pages) return pages;
  }
  const bool lse = a.lse.data != nullptr;
  if (lse) {
    if (auto tensor = check_row_numbers({"lse", &a.lse}, a.q); !tensor) return tensor;
  }
  return check_outputs(a, keys, values, lse, rows.scattered[3]);
}

// Filled in where the caller wants it. Hot: a copy in larger pieces than those just written would wait for them (a failed
// store-to-load forward).
void fill(AttentionProblem& problem, const wavejit_attention_forward_arguments& a, const CallTypes& types,
          const Extents& extents, const std::array<bool, 4>& scattered, float scale_log2e) {
  const bool paged = is_paged(a);
  const bool vectorised = a.pages.page_layout != WAVEJIT_PAGES_OF_ROWS;
  const bool first_keys = a.sequences.first_keys != nullptr;
  problem = {
      .shape = {{.dtype = types.output == WAVEJIT_BF16 ? DataType::bf16 : DataType::fp16,
                 .head_dim_qk = static_cast<int>(a.q.sizes[3]),
                 .head_dim_v = static_cast<int>(a.v.sizes[3]),
                 .narrow_queries = types.narrow_queries,
                 .query_fp32 = types.query_fp32,
                 .integers = types.integers,
                 .half_scores = a.modifiers.score_rounding == WAVEJIT_SCORES_IN_FP16,
                 .cache = types.narrow && !types.narrow_queries
                              ? attention::cache_type_of(*attention::type_of(a.k.dtype))
                              : CacheType::as_queries,
                 .token_scales = a.scales.token_scales != 0,
                 .lse = a.lse.data != nullptr,
                 .trans_q = scattered[0],
                 .trans_k = scattered[1],
                 .trans_v = scattered[2],
                 .trans_o = scattered[3],
                 .output = types.stored,
                 .paged = paged,
                 .whole_tiles = paged && !vectorised && holds_whole_tiles(a.k.sizes[1], first_keys),
                 .single_keys = paged && a.k.sizes[1] == 1,
                 .vectorised = vectorised,
                 .first_keys = first_keys}},
      .batch = static_cast<std::uint32_t>(extents.sequences),
      .query_length = static_cast<std::uint32_t>(extents.query_length),
      .key_length = static_cast<std::uint32_t>(extents.key_length),
      .query_heads = static_cast<std::uint32_t>(a.q.sizes[2]),
      .kv_heads = static_cast<std::uint32_t>(a.k.sizes[2]),
      .scale_log2e = scale_log2e,
      .scale =
          a.modifiers.scale == 0 && (a.head.flags & WAVEJIT_SCALE_IS_ZERO) == 0 ? default_scale(a) : a.modifiers.scale,
      .query_rows = static_cast<std::uint64_t>(a.q.sizes[0]) * static_cast<std::uint64_t>(a.q.sizes[1]),
      .uneven_lengths =
          may_be_uneven(a.sequences.key_starts != nullptr || a.sequences.key_lengths != nullptr || first_keys,
                        extents.sequences, extents.key_length, a.sequences.max_total_keys),
      .packed_queries = a.sequences.query_starts != nullptr,
  };
}

// What changes scores: the mask, modifiers, and the scales of 8 bits.
Check check_scores(const wavejit_attention_forward_arguments& a, const CallTypes& types, const Extents& extents,
                   AttentionProblem& problem) {
  const Result<MaskChoice> mask =
      check_mask(a.mask, problem.key_length, true, "alibi", a.modifiers.alibi.data != nullptr);
  if (!mask) return std::unexpected(mask.error());
  problem.shape.mask = mask->mask;
  problem.window_left = mask->left;
  problem.window_right = mask->right;
  if (auto flags = check_causal_flags(a, problem); !flags) return flags;
  problem.bottom_right = (a.mask.bits & WAVEJIT_MASK_PREFIX) == 0;
  problem.causal_prefix = static_cast<std::int32_t>(a.mask.causal_prefix);
  wavejit_tensor wide_q = a.q;
  wide_q.dtype = types.output;
  const ModifierCall modified = {.q = wide_q,
                                 .extents = extents,
                                 .packed_queries = a.sequences.query_starts != nullptr,
                                 .packed_keys = a.sequences.key_starts != nullptr,
                                 .scale_log2e = problem.scale_log2e};
  if (auto modifiers = check_modifiers(a.modifiers, modified, problem.shape.modifiers); !modifiers) return modifiers;
  if (problem.shape.has(Modifier::bias)) problem.shape.bias_fp32 = a.modifiers.bias.dtype == WAVEJIT_FP32;
  if (auto scale = attention::check_output_scale(a.output_scale, a.o, a.lse); !scale) return scale;
  return types.integers ? check_integer_scales(a, problem) : check_cache_scales(a, problem);
}

Check check_into(const wavejit_attention_forward_arguments* arguments, AttentionProblem& problem) {
  if (auto head = families::check_head(arguments, WAVEJIT_ATTENTION_FORWARD, "attention_forward", absent_fields); !head)
    return head;
  const wavejit_attention_forward_arguments& a = *arguments;
  CallTypes types;
  if (auto good = check_types(a, types); !good) return good;
  Extents extents;
  if (auto shapes = check_shapes(a, extents); !shapes) return shapes;
  CallRows rows;
  if (auto good = check_rows(a, types, extents, rows); !good) return good;
  const Result<float> scale_log2e =
      check_scale(a.modifiers.scale, a.head.flags, a.modifiers.scale == 0 ? default_scale(a) : a.modifiers.scale);
  if (!scale_log2e) return std::unexpected(scale_log2e.error());
  fill(problem, a, types, extents, rows.scattered, *scale_log2e);
  if (auto scores = check_scores(a, types, extents, problem); !scores) return scores;
  if (auto choices = check_choices(a, problem); !choices) return choices;
  if (auto lists = check_lists(a, problem); !lists) return lists;
  if (auto apart = check_apart_from_modifiers(a, problem.shape.lse); !apart) return apart;
  problem.close_heads = heads_stand_close(a, problem);
  problem.shape.set_rows(plan_rows(problem.query_length, problem.close_heads ? problem.group() : 1));
  if (problem.shape.block_lists) [[unlikely]]
    problem.shape.set_rows(rows_of_lists(problem.lists, problem.query_length));
  return take_key_lists(a, problem);
}

}  // namespace

Result<void> check_device_lengths(families::DeviceMemory& memory, const AttentionProblem& problem,
                                  const wavejit_attention_forward_arguments& call) {
  const Extents extents = attention::extents_of(problem);
  if (auto lengths = attention::check_device_lengths(memory, extents, call.q, call.k, call.sequences, call.pages);
      !lengths)
    return lengths;
  if (auto counts = attention::check_device_counts(memory, key_lists_of(call), problem.query_rows); !counts)
    return counts;
  if (auto counts = attention::check_second_counts(memory, second_list_of(call), problem.query_rows); !counts)
    return counts;
  return check_device_lists(memory, problem, call);
}

Result<AttentionProblem> check_attention_forward(const wavejit_attention_forward_arguments* arguments) {
  Result<AttentionProblem> problem(std::in_place);
  if (auto good = check_into(arguments, *problem); !good) [[unlikely]]
    problem = std::unexpected(std::move(good.error()));
  return problem;
}

}  // namespace wavejit::attention_forward
