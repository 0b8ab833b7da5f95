// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of integer queries and keys: fp32 [B or 1, S or 1, H or 1, 1], as the tensors themselves have them.
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

struct ScaledTensor {
  const wavejit_tensor& tensor;
  const char* sizes[3];  // their names
};

Result<void> check_row_scale(const Named& named, const ScaledTensor& of,
                             const wavejit_attention_forward_arguments& call, bool lse) {
  const wavejit_tensor& t = *named.tensor;
  if (auto kind = check_kind(named, WAVEJIT_FP32, alignof(float)); !kind) return kind;
  for (int d = 0; d < 3; ++d)
    if (auto size = check_size(named, d, of.tensor.sizes[d], of.sizes[d], true); !size) return size;
  if (auto one = check_size(named, 3, 1, "always", false); !one) return one;
  std::uint64_t span = sizeof(float);
  for (const int d : {0, 1, 2}) {
    if (t.sizes[d] <= 1) continue;
    if (t.strides[d] < 0 || t.strides[d] >= attention::max_slice_stride)
      return refuse(refusal::bad_stride(named, d, "0 (one for all) and positive, below 2^31"));
    if (d == 1)
      span += static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]) * sizeof(float);
  }
  if (span >= attention::scattered_limit_bytes)
    return refuse(refusal::bad_stride(named, 1, "scales of a head that span less than 2 GiB"));
  const families::Range range = range_of(t, sizeof(float));
  if (auto apart =
          check_apart({"o", &call.o}, range_of(call.o, attention::element_bytes_of(call.o)), named.name, range);
      !apart)
    return apart;
  if (!lse) return {};
  return check_apart({"lse", &call.lse}, range_of(call.lse, sizeof(float)), named.name, range);
}

}  // namespace

Result<void> check_integer_scales(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  const ScaledTensor q = {.tensor = call.q, .sizes = {"q.sizes[0]", "q.sizes[1]", "q.sizes[2]"}};
  const ScaledTensor k = {.tensor = call.k, .sizes = {"k.sizes[0]", "k.sizes[1]", "k.sizes[2]"}};
  if (call.scales.token_scales != 0 && call.scales.token_scales != 1)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "token_scales", std::to_string(call.scales.token_scales), "0, 1"));
  const bool of_keys = call.scales.token_scales == 1;
  const Named k_scale = {"k_scale", &call.scales.k_scale};
  if (of_keys && call.scales.k_scale.data == nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "k_scale.data", refusal::pointer_text(nullptr),
                      "f32 in device memory: with token_scales = 1 keys have scales"));
  if (call.scales.q_scale.data != nullptr)
    if (auto good = check_row_scale({"q_scale", &call.scales.q_scale}, q, call, problem.shape.lse); !good) return good;
  if (call.scales.k_scale.data != nullptr) {
    const bool right = call.scales.k_scale.sizes[1] == (of_keys ? call.k.sizes[1] : 1);
    if (!right)
      return refuse(refusal::bad_size(k_scale, 1,
                                      of_keys
                                          ? "k.sizes[1] = " + std::to_string(call.k.sizes[1]) + " (token_scales = 1)"
                                          : "1, or k.sizes[1] beside token_scales = 1"));
    if (auto good = check_row_scale(k_scale, k, call, problem.shape.lse); !good) return good;
  }
  if (call.scales.v_scale.data != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "v_scale.data", refusal::pointer_text(call.scales.v_scale.data),
                      "null beside v of " + refusal::dtype_text(call.v.dtype)));
  if (call.modifiers.score_rounding != WAVEJIT_SCORES_IN_FP32 &&
      call.modifiers.score_rounding != WAVEJIT_SCORES_IN_FP16)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "score_rounding", std::to_string(call.modifiers.score_rounding),
                      "0 (fp32), 1 (fp16, as rocMLIR rounds)"));
  return {};
}

}  // namespace wavejit::attention_forward
