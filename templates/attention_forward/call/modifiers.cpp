// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention_forward/call/checks.h"
#include "templates/attention_forward/kernel/modifier_fields.h"

namespace wavejit::attention_forward {
namespace {

using families::Range;
using families::range_of;
using families::surely_share;
using refusal::bad;
using refusal::Named;
using refusal::refuse;

using Check = Result<void>;

constexpr std::uintptr_t workspace_alignment = 256;

Check check_limit(const char* name, std::int32_t limit, bool window) {
  if (window) {
    if (limit >= -1) return {};
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, std::to_string(limit), "-1 (no limit), 0 and more"));
  }
  if (limit == 0 || limit == -1) return {};
  return refuse(
      bad(WAVEJIT_INVALID_ARGUMENT, name, std::to_string(limit), "0 unless mask has WAVEJIT_MASK_WINDOW (2)"));
}

// What every modifier tensor has: type, alignment, nothing in the reserved field.
Check check_kind(const Named& named, std::int32_t dtype, std::uintptr_t alignment) {
  const wavejit_tensor& t = *named.tensor;
  if (t.reserved != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "reserved"), std::to_string(t.reserved), "0"));
  if (t.dtype != dtype) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "dtype"), refusal::dtype_text(t.dtype),
                      refusal::dtype_text(dtype)));
  }
  if (reinterpret_cast<std::uintptr_t>(t.data) % alignment != 0) return refuse(refusal::bad_pointer(named, alignment));
  return {};
}

[[gnu::cold, gnu::noinline]] Failure wrong_size(const Named& named, int dimension, const std::string& accepted) {
  return bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "sizes") + "[" + std::to_string(dimension) + "]",
             std::to_string(named.tensor->sizes[dimension]), accepted);
}

[[gnu::cold, gnu::noinline]] Failure wrong_stride(const Named& named, int dimension, const std::string& accepted) {
  return bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "strides") + "[" + std::to_string(dimension) + "]",
             std::to_string(named.tensor->strides[dimension]), accepted);
}

Check check_size(const Named& named, int dimension, std::int64_t wanted, const char* source, bool broadcasts) {
  const std::int64_t size = named.tensor->sizes[dimension];
  if (size == wanted || (broadcasts && size == 1)) return {};
  return refuse(wrong_size(named, dimension,
                           (broadcasts && wanted != 1 ? "1 or " : "") + std::to_string(wanted) + " (" + source + ")"));
}

Check check_bias(const wavejit_attention_forward_arguments& call, const Extents& extents, const AttentionProblem&) {
  const Named bias = {"bias", &call.bias};
  const wavejit_tensor& t = call.bias;
  constexpr std::int64_t granule = 8;
  if (auto kind = check_kind(bias, call.q.dtype, 16); !kind) return kind;
  const bool packed = call.query_starts != nullptr;
  Check step =
      check_size(bias, 0, packed ? 1 : extents.sequences, packed ? "packed queries" : extents.sequences_from, true);
  if (step) step = check_size(bias, 1, call.q.sizes[2], "q.sizes[2]", true);
  if (step) step = check_size(bias, 2, call.q.sizes[1], "q.sizes[1]", false);
  if (step) {
    step = check_size(bias, 3, extents.key_length, call.key_starts != nullptr ? "max_key_length" : "k.sizes[1]", false);
  }
  if (!step) return step;
  for (int d = 0; d < 3; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] <= 0 || t.strides[d] % granule != 0 || t.strides[d] >= std::int64_t{1} << 46)
      return refuse(wrong_stride(bias, d, "positive multiples of 8 elements"));
  }
  if (t.sizes[2] > 1 && t.strides[2] < t.sizes[3])
    return refuse(wrong_stride(bias, 2, std::to_string(t.sizes[3]) + " (sizes[3]) and more"));
  if (t.sizes[3] > 1 && t.strides[3] != 1) return refuse(wrong_stride(bias, 3, "1"));
  // Checked by the row alone first: the product below stays inside 64 bits.
  const auto rows = static_cast<std::uint64_t>(t.sizes[2]) + tile_overrun_rows;
  const auto stride = static_cast<std::uint64_t>(t.sizes[2] > 1 ? t.strides[2] : t.sizes[3] + granule);
  if (stride >= slice_limit_bytes || rows * stride * 2 >= slice_limit_bytes) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "bias: bytes of one batch and head",
                      std::to_string(rows) + " rows (" + std::to_string(tile_overrun_rows) +
                          " of tile overrun included) of " + std::to_string(stride) + " elements",
                      "less than 4294967296 (4 GiB)"));
  }
  const Range range = range_of(t, 2);
  if (surely_share(range_of(call.o, 2), range)) {
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "o.data", refusal::pointer_text(call.o.data), "memory that bias does not use"));
  }
  return {};
}

// fp32 [B or 1, Hq, 1, 1]; the heads of one batch stand side by side.
Check check_per_head(const Named& named, const wavejit_attention_forward_arguments& call, std::int64_t sequences,
                     const char* sequences_from) {
  const wavejit_tensor& t = *named.tensor;
  Check step = check_kind(named, WAVEJIT_FP32, 4);
  if (step) step = check_size(named, 0, sequences, sequences_from, true);
  if (step) step = check_size(named, 1, call.q.sizes[2], "q.sizes[2]", false);
  if (step) step = check_size(named, 2, 1, "always", false);
  if (step) step = check_size(named, 3, 1, "always", false);
  if (!step) return step;
  if (t.sizes[1] > 1 && t.strides[1] != 1) return refuse(wrong_stride(named, 1, "1"));
  if (t.sizes[0] > 1 && (t.strides[0] < t.sizes[1] || t.strides[0] >= std::int64_t{1} << 40))
    return refuse(wrong_stride(named, 0, std::to_string(t.sizes[1]) + " (sizes[1]) and more"));
  return {};
}

Check check_softcap(const wavejit_attention_forward_arguments& call, const Extents&, const AttentionProblem& problem) {
  const float cap = call.softcap;
  const float rate = 2 * std::abs(problem.scale_log2e) / cap;
  if (cap > 0 && std::isfinite(cap * std::numbers::log2e_v<float>) && std::isfinite(rate)) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "softcap", std::to_string(cap),
                    "0 (none) or a positive number; finite in fp32 with scale / softcap"));
}

Check check_alibi(const wavejit_attention_forward_arguments& call, const Extents& extents, const AttentionProblem&) {
  return check_per_head({"alibi", &call.alibi}, call, extents.sequences, extents.sequences_from);
}

Check check_sink(const wavejit_attention_forward_arguments& call, const Extents&, const AttentionProblem&) {
  return check_per_head({"sink", &call.sink}, call, 1, "always");
}

// In the order in which calls are checked.
struct ModifierCheck {
  Modifier modifier;
  Check (*check)(const wavejit_attention_forward_arguments& call, const Extents& extents,
                 const AttentionProblem& problem);
};
constexpr std::array<ModifierCheck, modifier_count> modifier_checks = {{{Modifier::bias, check_bias},
                                                                        {Modifier::alibi, check_alibi},
                                                                        {Modifier::sink, check_sink},
                                                                        {Modifier::softcap, check_softcap}}};

Check check_splits(const wavejit_attention_forward_arguments& call) {
  if (call.splits < 0 || call.splits > max_splits) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "splits", std::to_string(call.splits),
                      refusal::up_to("0 (the engine's choice), 1", max_splits)));
  }
  if (reinterpret_cast<std::uintptr_t>(call.workspace) % workspace_alignment != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace", refusal::pointer_text(call.workspace),
                      "null (the engine's own), or device memory aligned to 256 bytes"));
  }
  if (call.workspace == nullptr && call.workspace_bytes != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace_bytes", std::to_string(call.workspace_bytes),
                      "0 while workspace is null"));
  }
  return {};
}

[[gnu::cold, gnu::noinline]] Result<void> check_rare_flags(const wavejit_attention_forward_arguments& call) {
  constexpr std::uint32_t all = WAVEJIT_CHECK_LENGTHS | WAVEJIT_BATCH_MAY_SHOW | WAVEJIT_SCALE_IS_ZERO |
                                WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  if ((call.flags & ~all) != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "flags", std::to_string(call.flags),
                      "0, or a sum of 1 (check the lengths), 2 (the batch may show), 4 (the scale is zero), 8 (no "
                      "compile), 16 (compile behind)"));
  }
  if ((call.flags & WAVEJIT_SCALE_IS_ZERO) != 0 && call.scale != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "scale", std::to_string(call.scale),
                      "0 beside WAVEJIT_SCALE_IS_ZERO, or no such flag"));
  }
  if ((call.flags & WAVEJIT_COMPILE_BEHIND) != 0 && (call.flags & WAVEJIT_NO_COMPILE) == 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "flags", std::to_string(call.flags),
                      "16 (compile behind) beside 8 (no compile) only"));
  }
  return {};
}

}  // namespace

MaskChoice choose_mask(bool causal, bool window, std::int64_t left, std::int64_t right) {
  const auto limit = [](std::int64_t given) {
    return given < 0 ? unlimited_window : static_cast<std::int32_t>(std::min<std::int64_t>(given, unlimited_window));
  };
  MaskChoice choice;
  if (!window) {
    choice.mask = causal ? Mask::causal : Mask::none;
    return choice;
  }
  choice.left = limit(left);
  choice.right = causal ? 0 : limit(right);
  // A window without a left limit is one of the simpler masks, and has their kernel.
  if (choice.left == unlimited_window && choice.right == unlimited_window) return {};
  if (choice.left == unlimited_window && choice.right == 0) return {.mask = Mask::causal};
  choice.mask = Mask::window;
  return choice;
}

Result<void> check_mask(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  constexpr std::int32_t known = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX;
  if ((call.mask & ~known) != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(call.mask),
                      "0 (none), or a sum of 1 (causal), 2 (window), 4 (prefix)"));
  }
  const bool causal = (call.mask & WAVEJIT_MASK_CAUSAL) != 0;
  const bool window = (call.mask & WAVEJIT_MASK_WINDOW) != 0;
  const bool prefix = (call.mask & WAVEJIT_MASK_PREFIX) != 0;
  if (auto left = check_limit("window_left", call.window_left, window); !left) return left;
  if (auto right = check_limit("window_right", call.window_right, window); !right) return right;
  const bool has_diagonal = causal || window || call.alibi.data != nullptr;
  if (prefix && !has_diagonal) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(call.mask),
                      "4 (prefix) with 1 (causal), 2 (window) or alibi: nothing else has a diagonal"));
  }
  if (prefix ? call.causal_prefix < 0 || call.causal_prefix > problem.key_length : call.causal_prefix != 0) {
    return refuse(bad(
        WAVEJIT_INVALID_ARGUMENT, "causal_prefix", std::to_string(call.causal_prefix),
        prefix ? refusal::up_to("0", problem.key_length) + ", the keys" : "0 unless mask has WAVEJIT_MASK_PREFIX (4)"));
  }
  const MaskChoice choice = choose_mask(causal, window, call.window_left, call.window_right);
  problem.shape.mask = choice.mask;
  problem.window_left = choice.left;
  problem.window_right = choice.right;
  problem.bottom_right = !prefix;
  problem.causal_prefix = static_cast<std::int32_t>(call.causal_prefix);
  return {};
}

Result<void> check_modifiers(const wavejit_attention_forward_arguments& call, const Extents& extents,
                             AttentionProblem& problem) {
  for (const ModifierCheck& one : modifier_checks) {
    if (!given(fields_of(one.modifier), call)) [[likely]]
      continue;
    if (auto good = one.check(call, extents, problem); !good) return good;
    if (row_of(one.modifier).in_code) problem.shape.modifiers.add(one.modifier);
  }
  if (auto splits = check_splits(call); !splits) return splits;
  problem.splits = static_cast<std::uint32_t>(call.splits);
  problem.any_bits = (call.flags & WAVEJIT_BATCH_MAY_SHOW) != 0;
  if ((call.flags & ~std::uint32_t{WAVEJIT_CHECK_LENGTHS | WAVEJIT_BATCH_MAY_SHOW}) != 0) [[unlikely]] {
    if (auto flags = check_rare_flags(call); !flags) return flags;
  }
  if (call.max_total_keys < 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "max_total_keys", std::to_string(call.max_total_keys),
                      "0, which says nothing, and the keys of all sequences together"));
  if (call.reserved != 0) return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "reserved", std::to_string(call.reserved), "0"));
  if (call.reserved_pages != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "reserved_pages", std::to_string(call.reserved_pages), "0"));
  return {};
}

}  // namespace wavejit::attention_forward
