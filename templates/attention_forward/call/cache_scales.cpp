// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of a cache of 8 bits: fp32 [B or 1, 1, Hkv or 1, 1].
#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {
namespace {

using attention::check_apart;
using attention::check_kind;
using attention::check_size;
using attention::Named;
using families::range_of;
using refusal::bad;
using refusal::refuse;

Result<void> check_scale_tensor(const Named& named, const wavejit_attention_forward_arguments& call,
                                const AttentionProblem& problem) {
  const wavejit_tensor& t = *named.tensor;
  if (t.data == nullptr) return {};
  if (problem.shape.cache == CacheType::as_queries)
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "data"), refusal::pointer_text(t.data),
            "null beside k and v of " + refusal::dtype_text(call.k.dtype) + ": scales are of caches of 8 bits"));
  if (auto kind = check_kind(named, WAVEJIT_FP32, alignof(float)); !kind) return kind;
  if (auto batch = check_size(named, 0, problem.batch, "sequences", true); !batch) return batch;
  if (auto length = check_size(named, 1, 1, "one for all keys", false); !length) return length;
  if (auto heads = check_size(named, 2, problem.kv_heads, "k.sizes[2]", true); !heads) return heads;
  if (auto one = check_size(named, 3, 1, "always", false); !one) return one;
  for (const int dimension : {0, 2}) {
    if (t.sizes[dimension] > 1 && (t.strides[dimension] < 0 || t.strides[dimension] >= attention::max_slice_stride))
      return refuse(refusal::bad_stride(named, dimension, "0 (one for all) and positive, below 2^31"));
  }
  const families::Range range = range_of(t, sizeof(float));
  if (auto apart =
          check_apart({"o", &call.o}, range_of(call.o, attention::element_bytes_of(call.o)), named.name, range);
      !apart)
    return apart;
  if (!problem.shape.lse) return {};
  return check_apart({"lse", &call.lse}, range_of(call.lse, sizeof(float)), named.name, range);
}

}  // namespace

Result<void> check_cache_scales(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem) {
  if (call.q_scale.data != nullptr || call.score_rounding != WAVEJIT_SCORES_IN_FP32) [[unlikely]]
    return refuse(bad(
        WAVEJIT_INVALID_ARGUMENT, call.q_scale.data != nullptr ? "q_scale.data" : "score_rounding",
        call.q_scale.data != nullptr ? refusal::pointer_text(call.q_scale.data) : std::to_string(call.score_rounding),
        "none beside q of " + refusal::dtype_text(call.q.dtype) + ": they are of q and k of int8"));
  if (call.k_scale.data == nullptr && call.v_scale.data == nullptr) [[likely]]
    return {};
  if (auto good = check_scale_tensor({"k_scale", &call.k_scale}, call, problem); !good) return good;
  return check_scale_tensor({"v_scale", &call.v_scale}, call, problem);
}

}  // namespace wavejit::attention_forward
