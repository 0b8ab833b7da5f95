// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/cache_scales.h"

#include <string>

#include "families/call/tensor_memory.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {
namespace {

using families::refusal::Named;

// As k and v lie.
[[gnu::cold, gnu::noinline]] Result<void> check_token_scale(const Named& named,
                                                            const wavejit_attention_forward_arguments& call,
                                                            const AttentionProblem& problem) {
  const wavejit_tensor& t = *named.tensor;
  const auto bad_data = [&](const std::string& accepted) {
    return families::refusal::refuse(families::refusal::bad(WAVEJIT_INVALID_ARGUMENT,
                                                            families::refusal::field(named, "data"),
                                                            families::refusal::pointer_text(t.data), accepted));
  };
  if (t.data == nullptr) return bad_data("f32 in device memory: with token_scales = 1 keys and values have scales");
  if (auto kind = check_kind(named, WAVEJIT_FP32, alignof(float)); !kind) return kind;
  // A page that has no scales of its own would not be a page.
  if (auto batch = check_size(named, 0, call.k.sizes[0], "k.sizes[0]", !problem.shape.paged); !batch) return batch;
  if (auto length = check_size(named, 1, call.k.sizes[1], "k.sizes[1]", false); !length) return length;
  if (auto heads = check_size(named, 2, problem.kv_heads, "k.sizes[2]", true); !heads) return heads;
  if (auto one = check_size(named, 3, 1, "always", false); !one) return one;
  for (const int dimension : {0, 2})
    if (t.sizes[dimension] > 1 && t.strides[dimension] < 0)
      return families::refusal::refuse(families::refusal::bad_stride(named, dimension, "0 (one for all) and positive"));
  // Kernels count bytes from a sequence's first key, or a page's, in 32 bits.
  const std::int64_t rows = t.sizes[1] + static_cast<std::int64_t>(attention::tile_overrun_rows);
  const std::int64_t most = ((std::int64_t{1} << 32) - 1) / (rows * std::int64_t{sizeof(float)});
  if (t.sizes[1] > 1 && (t.strides[1] < 0 || t.strides[1] > most))
    return families::refusal::refuse(
        families::refusal::bad_stride(named, 1, "0 (one for all) and positive, up to " + std::to_string(most)));
  const families::Range range = families::range_of(t, sizeof(float));
  if (auto apart = check_apart({"o", &call.o}, families::range_of(call.o, attention::element_bytes_of(call.o)),
                               named.name, range);
      !apart || !problem.shape.lse)
    return apart;
  return check_apart({"lse", &call.lse}, families::range_of(call.lse, sizeof(float)), named.name, range);
}

[[gnu::cold, gnu::noinline]] Result<void> check_token_scales(const wavejit_attention_forward_arguments& call,
                                                             const AttentionProblem& problem) {
  const bool narrow = problem.shape.cache != CacheType::as_queries;
  if (call.scales.token_scales != 1 || !narrow)
    return families::refusal::refuse(families::refusal::bad(
        WAVEJIT_INVALID_ARGUMENT, "token_scales", std::to_string(call.scales.token_scales),
        narrow ? std::string("0, 1")
               : "0 beside q of " + families::refusal::dtype_text(call.q.dtype) + " and k of " +
                     families::refusal::dtype_text(call.k.dtype) + ": tokens have scales in caches of 8 bits"));
  if (call.scales.q_scale.data != nullptr)
    return families::refusal::refuse(families::refusal::bad(WAVEJIT_INVALID_ARGUMENT, "q_scale.data",
                                                            families::refusal::pointer_text(call.scales.q_scale.data),
                                                            "null beside token_scales = 1"));
  if (auto good = check_token_scale({"k_scale", &call.scales.k_scale}, call, problem); !good) return good;
  return check_token_scale({"v_scale", &call.scales.v_scale}, call, problem);
}

}  // namespace

Result<void> check_cache_scales(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem) {
  if (call.modifiers.score_rounding != WAVEJIT_SCORES_IN_FP32) [[unlikely]]
    return families::refusal::refuse(families::refusal::bad(
        WAVEJIT_INVALID_ARGUMENT, "score_rounding", std::to_string(call.modifiers.score_rounding),
        "0 beside q of " + families::refusal::dtype_text(call.q.dtype) + ": only q and k of int8 have it"));
  if (call.scales.token_scales != 0) [[unlikely]]
    return check_token_scales(call, problem);
  if (call.scales.k_scale.data == nullptr && call.scales.v_scale.data == nullptr && call.scales.q_scale.data == nullptr)
      [[likely]]
    return {};
  const attention::CacheScaleCall scales = {.k = call.k,
                                            .o = call.o,
                                            .lse = problem.shape.lse ? &call.lse : nullptr,
                                            .batch = problem.batch,
                                            .kv_heads = problem.kv_heads};
  if (auto good = attention::check_cache_scale({"k_scale", &call.scales.k_scale}, scales); !good) return good;
  if (auto good = attention::check_cache_scale({"v_scale", &call.scales.v_scale}, scales); !good) return good;
  const families::refusal::Named q_scale = {"q_scale", &call.scales.q_scale};
  if (call.scales.q_scale.data != nullptr && !problem.shape.narrow_queries)
    return families::refusal::refuse(families::refusal::bad(
        WAVEJIT_INVALID_ARGUMENT, families::refusal::field(q_scale, "data"),
        families::refusal::pointer_text(call.scales.q_scale.data),
        "null beside q of " + families::refusal::dtype_text(call.q.dtype) + ": only q in 8 bits has a scale"));
  return attention::check_cache_scale(q_scale, scales);
}

}  // namespace wavejit::attention_forward
