// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/problem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/cache_scales.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/device_lengths.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention/call/workspace.h"
#include "templates/attention_latent/call/key_lists.h"
#include "templates/attention_latent/call/scaled_rows.h"
#include "templates/attention_latent/kernel/rows.h"

namespace wavejit::attention_latent {
namespace {

using attention::check_apart;
using attention::check_no_overlap;
using attention::check_size;
using attention::check_sizes;
using attention::check_tensor;
using attention::element_bytes_of;
using attention::Extents;
using families::Range;
using families::range_of;
using families::refusal::bad;
using families::refusal::bad_size;
using families::refusal::dtype_text;
using families::refusal::Named;
using families::refusal::refuse;
using families::refusal::up_to;

using Check = Result<void>;
using Call = wavejit_attention_latent_arguments;

bool is_paged(const Call& call) { return call.pages.block_table != nullptr; }
std::int64_t dims_of(const wavejit_tensor& latent, const wavejit_tensor& rope) {
  return latent.sizes[3] + (rope.data != nullptr ? rope.sizes[3] : 0);
}

// Which of the pairs (D, Dv) the tensors have. On the hot path: texts are made where something is refused.
Result<Dims> check_dims(const Call& call, RowScales scales) {
  const std::int64_t v = call.o.sizes[3];
  const std::int64_t qk = dims_of(call.q, call.q_rope);
  for (const auto& [dims, name] : dims_names) {
    const HeadDims of = head_dims(dims);
    if (of.qk != qk || of.v != v) continue;
    if (scales != RowScales::none) [[unlikely]] {
      if (auto rows = check_scaled_rows(call, scales, of); !rows) return std::unexpected(std::move(rows.error()));
      if (call.q_rope.data != nullptr && call.q.sizes[3] != v)
        return std::unexpected(bad_size({"q", &call.q}, 3, std::to_string(v) + " (o.sizes[3]) beside q_rope"));
      return dims;
    }
    for (const auto& [name_of, latent, rope] : {std::tuple{"q", &call.q, &call.q_rope}, {"k", &call.k, &call.k_rope}}) {
      const bool apart = rope->data != nullptr;
      if (apart && latent->sizes[3] != v)
        return std::unexpected(
            bad_size({name_of, latent}, 3,
                     std::to_string(v) + " (o.sizes[3]) beside " + name_of + "_rope, whose columns follow V's"));
      if (dims_of(*latent, *rope) != qk)
        return std::unexpected(
            bad_size({name_of, latent}, 3, std::to_string(qk) + " columns, with " + name_of + "_rope's, as q has"));
    }
    return dims;
  }
  std::string known;
  for (const auto& [dims, name] : dims_names) {
    const HeadDims of = head_dims(dims);
    known += (known.empty() ? "" : ", ") + std::to_string(of.qk) + " with o.sizes[3] = " + std::to_string(of.v);
  }
  return std::unexpected(bad(WAVEJIT_UNSUPPORTED, "q.sizes[3] (with q_rope.sizes[3])",
                             std::to_string(qk) + " with o.sizes[3] = " + std::to_string(v), known));
}

// Sizes of the tensor beside q (of queries) or k (of keys). On the hot path, too.
Check check_like(const Named& named, const Named& like) {
  for (int d = 0; d < 3; ++d) {
    if (named.tensor->sizes[d] == like.tensor->sizes[d]) [[likely]]
      continue;
    const std::string source = std::string(like.name) + ".sizes[" + std::to_string(d) + "]";
    if (auto size = check_size(named, d, like.tensor->sizes[d], source.c_str(), false); !size) return size;
  }
  return {};
}

Check check_outputs(const Call& call) {
  const Named o = {"o", &call.o};
  const Named lse = {"lse", &call.lse};
  const Range of_o = range_of(call.o, element_bytes_of(call.o));
  if (auto good = check_no_overlap(o, 3, static_cast<std::uint64_t>(call.o.sizes[3])); !good) return good;
  const std::array<Named, 6> inputs = {{{"q", &call.q},
                                        {"q_rope", &call.q_rope},
                                        {"k", &call.k},
                                        {"k_rope", &call.k_rope},
                                        {"second_k", &call.second_k},
                                        {"sink", &call.modifiers.sink}}};
  for (const Named& input : inputs)
    if (input.tensor->data != nullptr)
      if (auto good = check_apart(o, of_o, input.name, range_of(*input.tensor, element_bytes_of(*input.tensor))); !good)
        return good;
  if (call.lse.data == nullptr) return {};
  if (auto good = check_no_overlap(lse, 2, static_cast<std::uint64_t>(call.lse.sizes[2])); !good) return good;
  const Range of_lse = range_of(call.lse, sizeof(float));
  for (const Named& input : inputs)
    if (input.tensor->data != nullptr)
      if (auto good = check_apart(lse, of_lse, input.name, range_of(*input.tensor, element_bytes_of(*input.tensor)));
          !good)
        return good;
  return check_apart(lse, of_lse, "o", of_o);
}

Check check_choices(const Call& call) {
  if (auto split = attention::check_split(call.split); !split) return split;
  constexpr std::uint32_t known = WAVEJIT_CHECK_LENGTHS | WAVEJIT_SCALE_IS_ZERO | WAVEJIT_NO_COMPILE |
                                  WAVEJIT_COMPILE_BEHIND | WAVEJIT_ONE_LAUNCH | WAVEJIT_TWO_LAUNCHES;
  if (auto flags = attention::check_flags(call.head.flags, known, call.modifiers.scale); !flags) return flags;
  if (call.sequences.max_total_keys < 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "max_total_keys", std::to_string(call.sequences.max_total_keys),
                      "0, which says nothing, and the keys of all sequences together"));
  return {};
}

// Pages of both tensors are those of one table.
Check check_both_pages(const Call& call, std::int64_t key_length) {
  for (const wavejit_tensor* tensor : {&call.k, &call.k_rope}) {
    if (tensor == &call.k_rope && tensor->data == nullptr) continue;
    if (auto pages = attention::check_pages(*tensor, *tensor, call.pages, key_length); !pages) return pages;
  }
  return {};
}

Check check_keys(const Call& call, const Extents& extents) {
  const Named k = {"k", &call.k};
  const std::int64_t kv_batch = is_paged(call) || names_slots(call)    ? call.k.sizes[0]
                                : call.sequences.key_starts != nullptr ? 1
                                                                       : extents.sequences;
  const char* kv_batch_from = is_paged(call)                         ? "k.sizes[0]"
                              : call.sequences.key_starts != nullptr ? "packed keys"
                                                                     : extents.sequences_from;
  if (auto size = check_size(k, 0, kv_batch, kv_batch_from, false); !size) return size;
  if (call.k.sizes[2] != 1)
    return refuse(bad_size(k, 2, "1: all query heads read the one latent head (attention_forward has several)"));
  if (call.k_rope.data != nullptr) return check_like({"k_rope", &call.k_rope}, k);
  return {};
}

// What changes scores: the mask and lists, the sink and the soft cap, the scale of a cache of 8 bits.
Check check_scores(const Call& call, const Extents& extents, LatentProblem& problem) {
  const Result<attention::MaskChoice> mask = attention::check_mask(call.mask, problem.key_length);
  if (!mask) return std::unexpected(mask.error());
  if (mask->mask == attention::Mask::window)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "mask", std::to_string(call.mask.bits),
                      "0 (none), or WAVEJIT_MASK_CAUSAL with or without WAVEJIT_MASK_PREFIX"));
  problem.causal = mask->mask == attention::Mask::causal;
  problem.shape.mask = problem.causal ? Mask::causal : Mask::none;
  if (auto lists = take_lists(call, problem); !lists) return lists;
  const attention::ModifierCall modified = {.q = call.q,
                                            .extents = extents,
                                            .packed_queries = problem.packed_queries,
                                            .packed_keys = call.sequences.key_starts != nullptr,
                                            .scale_log2e = problem.scale_log2e};
  static constexpr wavejit_tensor none{};
  if (call.modifiers.sink.data != nullptr)
    if (auto sink = attention::check_modifier(Modifier::sink, modified, call.modifiers.sink, 0); !sink) return sink;
  if (call.modifiers.softcap != 0) {
    if (auto softcap = attention::check_modifier(Modifier::softcap, modified, none, call.modifiers.softcap); !softcap)
      return softcap;
    problem.shape.modifiers.add(Modifier::softcap);
  }
  if (call.scales.k_scale.data != nullptr) {
    const attention::CacheScaleCall scale = {.k = call.k,
                                             .o = call.o,
                                             .lse = call.lse.data != nullptr ? &call.lse : nullptr,
                                             .batch = extents.sequences,
                                             .kv_heads = 1};
    if (auto good = attention::check_cache_scale({"k_scale", &call.scales.k_scale}, scale); !good) return good;
  }
  return {};
}

// `problem` is filled in where the caller wants it. `whole`: with exponents, which `call` has no more.
Check check_into(const Call& call, const Call& whole, RowScales row_scales, LatentProblem& problem) {
  if (call.q.dtype != WAVEJIT_FP16 && call.q.dtype != WAVEJIT_BF16)
    return refuse(bad(call.q.dtype == WAVEJIT_FP32 ? WAVEJIT_UNSUPPORTED : WAVEJIT_INVALID_ARGUMENT, "q.dtype",
                      dtype_text(call.q.dtype), "1 (fp16), 2 (bf16)"));
  const bool paged = is_paged(call);
  const std::optional<DataType> key_type = attention::type_of(call.k.dtype);
  const bool narrow = key_type && is_narrow(*key_type);
  const std::array<Named, 5> tensors = {
      {{"q", &call.q}, {"k", &call.k}, {"o", &call.o}, {"q_rope", &call.q_rope}, {"k_rope", &call.k_rope}}};
  const auto is_there = [&](const Named& named) {
    return named.tensor->data != nullptr || (named.tensor != &call.q_rope && named.tensor != &call.k_rope);
  };
  const auto is_of_keys = [&](const Named& named) { return named.tensor == &call.k || named.tensor == &call.k_rope; };
  for (const Named& named : tensors) {
    if (!is_there(named)) continue;
    const bool of_keys = is_of_keys(named);
    if (auto sizes =
            check_sizes(named, of_keys, of_keys && (paged || names_slots(call)) ? attention::max_pages : max_batch);
        !sizes)
      return sizes;
  }
  if (call.q.sizes[2] > max_heads)
    return refuse(bad_size({"q", &call.q}, 2, up_to("1", max_heads), WAVEJIT_UNSUPPORTED));
  Extents extents;
  if (says_of_lists(call)) [[unlikely]]
    if (auto lists = check_list_fields(call); !lists) return lists;
  if (auto sequences = attention::check_sequences(call.q, call.k, call.sequences, call.pages, extents); !sequences)
    return sequences;
  if (auto keys = check_keys(call, extents); !keys) return keys;
  if (auto like = check_like({"o", &call.o}, {"q", &call.q}); !like) return like;
  if (call.q_rope.data != nullptr)
    if (auto like = check_like({"q_rope", &call.q_rope}, {"q", &call.q}); !like) return like;
  const Result<Dims> dims = check_dims(call, row_scales);
  if (!dims) return std::unexpected(dims.error());
  for (const Named& named : tensors) {
    if (!is_there(named)) continue;
    const bool of_keys = is_of_keys(named);
    const attention::TensorRules rules = {
        .dtype = of_keys && narrow ? call.k.dtype : call.q.dtype,
        .longest = attention::longest_of_packed(
            extents, of_keys ? call.sequences.key_starts : call.sequences.query_starts, of_keys),
        .read_only = named.tensor != &call.o};
    if (auto tensor = check_tensor(named, rules); !tensor) return tensor;
  }
  if (paged)
    if (auto pages = check_both_pages(call, extents.key_length); !pages) return pages;
  if (call.lse.data != nullptr)
    if (auto lse = attention::check_row_numbers({"lse", &call.lse}, call.q); !lse) return lse;
  if (call.modifiers.scale == 0 && (call.head.flags & WAVEJIT_SCALE_IS_ZERO) == 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "scale", "0",
                      "the model's, such as 1 / sqrt(192) for 128 + 64 dims before absorption: no width of this call "
                      "says it (0 with WAVEJIT_SCALE_IS_ZERO in flags)"));
  const Result<float> scale_log2e = attention::check_scale(call.modifiers.scale, call.head.flags, call.modifiers.scale);
  if (!scale_log2e) return std::unexpected(scale_log2e.error());
  if (auto outputs = check_outputs(whole); !outputs) return outputs;

  const auto heads = static_cast<std::uint32_t>(call.q.sizes[2]);
  const std::uint64_t rows = static_cast<std::uint64_t>(extents.query_length) * heads;
  // A row is divided by the heads by multiplication (emit/integers.h), which is exact below 2³² / heads.
  if (rows >= (std::uint64_t{1} << 32U) / heads)
    return refuse(bad_size(
        {"q", &call.q}, 1,
        up_to("1", ((std::int64_t{1} << 32) / heads / heads) - 1) + " with " + std::to_string(heads) + " heads"));
  problem = {.shape = {{.dtype = call.q.dtype == WAVEJIT_BF16 ? DataType::bf16 : DataType::fp16,
                        .cache = narrow ? attention::cache_type_of(*key_type) : CacheType::as_queries,
                        .row_scales = row_scales,
                        .dims = *dims,
                        .modifiers = {},
                        .rows = rows_for(rows),
                        .pages = paged ? pages_for(call.k.sizes[1]) : Pages::dense}},
             .batch = static_cast<std::uint32_t>(extents.sequences),
             .query_length = static_cast<std::uint32_t>(extents.query_length),
             .key_length = static_cast<std::uint32_t>(extents.key_length),
             .heads = heads,
             .scale_log2e = *scale_log2e,
             .bottom_right = (call.mask.bits & WAVEJIT_MASK_PREFIX) == 0,
             .causal_prefix = static_cast<std::int32_t>(call.mask.causal_prefix),
             .query_rows = static_cast<std::uint64_t>(call.q.sizes[0]) * static_cast<std::uint64_t>(call.q.sizes[1]),
             .splits = static_cast<std::uint32_t>(std::max<std::int64_t>(call.split.splits, 0)),
             .launches = attention::launches_of(call.head.flags),
             .packed_queries = call.sequences.query_starts != nullptr,
             .uneven_lengths =
                 attention::may_be_uneven(call.sequences.key_starts != nullptr || call.sequences.key_lengths != nullptr,
                                          extents.sequences, extents.key_length, call.sequences.max_total_keys)};
  if (auto scores = check_scores(call, extents, problem); !scores) return scores;
  return check_choices(call);
}

[[gnu::cold, gnu::noinline]] Check check_exponents_into(const Call& call, LatentProblem& problem) {
  if (auto rows = check_exponent_rows(call); !rows) return rows;
  Call rows = call;
  rows.k = rows_of_exponents(call.k);
  if (has_second_list(call)) rows.second_k = rows_of_exponents(call.second_k);
  return check_into(rows, call, RowScales::of_64, problem);
}

// What the parts have and this family has not.
constexpr auto absent_fields = attention::without_mask_kinds<wavejit_attention_latent_arguments>(std::array{
    families::AbsentField{"window_left", offsetof(wavejit_attention_latent_arguments, mask.window_left), 4},
    families::AbsentField{"window_right", offsetof(wavejit_attention_latent_arguments, mask.window_right), 4},
    families::AbsentField{"causal_flags", offsetof(wavejit_attention_latent_arguments, mask.causal_flags), 8},
    families::AbsentField{"score_rounding", offsetof(wavejit_attention_latent_arguments, modifiers.score_rounding), 8},
    families::AbsentField{"bias.data", offsetof(wavejit_attention_latent_arguments, modifiers.bias), 8},
    families::AbsentField{"alibi.data", offsetof(wavejit_attention_latent_arguments, modifiers.alibi), 8},
    families::AbsentField{"bool_mask.data", offsetof(wavejit_attention_latent_arguments, modifiers.bool_mask), 8},
    families::AbsentField{"first_keys", offsetof(wavejit_attention_latent_arguments, sequences.first_keys), 8},
    families::AbsentField{"page_layout", offsetof(wavejit_attention_latent_arguments, pages.page_layout), 8},
    families::AbsentField{"v_scale.data", offsetof(wavejit_attention_latent_arguments, scales.v_scale), 8},
    families::AbsentField{"q_scale.data", offsetof(wavejit_attention_latent_arguments, scales.q_scale), 8},
    families::AbsentField{"token_scales", offsetof(wavejit_attention_latent_arguments, scales.token_scales), 4},
});

Check check_arguments(const Call* arguments, LatentProblem& problem) {
  if (auto head = families::check_head(arguments, WAVEJIT_ATTENTION_LATENT, "attention_latent", absent_fields); !head)
    return head;
  const Result<RowScales> scales = row_scales_of(*arguments);
  if (!scales) [[unlikely]]
    return std::unexpected(scales.error());
  if (*scales == RowScales::of_64) [[unlikely]]
    return check_exponents_into(*arguments, problem);
  return check_into(*arguments, *arguments, *scales, problem);
}

}  // namespace

Result<LatentProblem> check(const Call* arguments) {
  Result<LatentProblem> problem(std::in_place);
  if (auto good = check_arguments(arguments, *problem); !good) [[unlikely]]
    problem = std::unexpected(std::move(good.error()));
  return problem;
}

void take_rows(LatentProblem& problem, const targets::Target& target, const families::Toggles& toggles) {
  Rows& rows = problem.shape.rows;
  if (most_rows(problem.shape, target) == Rows::r32) rows = Rows::r32;
  if (rows != Rows::r128) rows = default_rows(target, rows == Rows::r32 ? RowCount::up_to_32 : RowCount::more);
  if (toggles.pins.empty()) [[likely]]
    return;
  const std::string_view pinned = families::value_in(toggles.pins, tile_pin);
  rows = families::value_in(rows_names, pinned).value_or(rows);
}

Result<void> check_workspace_of(const Call& call, const LatentProblem& problem, std::uint64_t bytes) {
  if (call.split.workspace == nullptr || bytes == 0) return {};
  const Named tensors[] = {{"q", &call.q},           {"q_rope", &call.q_rope},       {"k", &call.k},
                           {"k_rope", &call.k_rope}, {"second_k", &call.second_k},   {"o", &call.o},
                           {"lse", &call.lse},       {"sink", &call.modifiers.sink}, {"k_scale", &call.scales.k_scale}};
  const attention::NamedNumbers lists[] = {{"key_indices", call.key_list.indices, 1},
                                           {"key_counts", call.key_list.counts, 1},
                                           {"second_indices", call.second_list.indices, 1},
                                           {"second_counts", call.second_list.counts, 1}};
  return attention::check_workspace(call.split, bytes, tensors,
                                    attention::numbers_of(call.sequences, call.pages, problem.batch), lists);
}

Result<void> check_device_lengths(families::DeviceMemory& memory, const LatentProblem& problem, const Call& call) {
  const Extents extents = attention::extents_of(problem);
  if (auto counts = attention::check_device_counts(memory, lists_of(call), problem.query_rows); !counts) return counts;
  if (auto counts = attention::check_second_counts(memory, second_list_of(call), problem.query_rows); !counts)
    return counts;
  return attention::check_device_lengths(memory, extents, call.q, call.k, call.sequences, call.pages);
}

}  // namespace wavejit::attention_latent
