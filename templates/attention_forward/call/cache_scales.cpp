// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/cache_scales.h"

#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {

Result<void> check_cache_scales(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem) {
  if (call.score_rounding != WAVEJIT_SCORES_IN_FP32) [[unlikely]]
    return families::refusal::refuse(families::refusal::bad(
        WAVEJIT_INVALID_ARGUMENT, "score_rounding", std::to_string(call.score_rounding),
        "0 beside q of " + families::refusal::dtype_text(call.q.dtype) + ": it is of q and k of int8"));
  if (call.k_scale.data == nullptr && call.v_scale.data == nullptr && call.q_scale.data == nullptr) [[likely]]
    return {};
  const attention::CacheScaleCall scales = {.k = call.k,
                                            .o = call.o,
                                            .lse = problem.shape.lse ? &call.lse : nullptr,
                                            .batch = problem.batch,
                                            .kv_heads = problem.kv_heads};
  if (auto good = attention::check_cache_scale({"k_scale", &call.k_scale}, scales); !good) return good;
  if (auto good = attention::check_cache_scale({"v_scale", &call.v_scale}, scales); !good) return good;
  const families::refusal::Named q_scale = {"q_scale", &call.q_scale};
  if (call.q_scale.data != nullptr && !problem.shape.narrow_queries)
    return families::refusal::refuse(families::refusal::bad(
        WAVEJIT_INVALID_ARGUMENT, families::refusal::field(q_scale, "data"),
        families::refusal::pointer_text(call.q_scale.data),
        "null beside q of " + families::refusal::dtype_text(call.q.dtype) + ": a scale is of q in 8 bits"));
  return attention::check_cache_scale(q_scale, scales);
}

}  // namespace wavejit::attention_forward
