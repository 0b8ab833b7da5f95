// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/cache_scales.h"

#include <string>

#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention {
namespace refusal = families::refusal;

families::Result<void> check_cache_scale(const Named& named, const CacheScaleCall& call) {
  const wavejit_tensor& t = *named.tensor;
  if (t.data == nullptr) return {};
  const auto type = type_of(call.k.dtype);
  if (!type || !is_narrow(*type))
    return refusal::refuse(
        refusal::bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "data"), refusal::pointer_text(t.data),
                     "null beside k of " + refusal::dtype_text(call.k.dtype) + ": only caches of 8 bits have scales"));
  if (auto kind = check_kind(named, WAVEJIT_FP32, alignof(float)); !kind) return kind;
  if (auto batch = check_size(named, 0, call.batch, "sequences", true); !batch) return batch;
  if (auto length = check_size(named, 1, 1, "one for all keys", false); !length) return length;
  if (auto heads = check_size(named, 2, call.kv_heads, "k.sizes[2]", true); !heads) return heads;
  if (auto one = check_size(named, 3, 1, "always", false); !one) return one;
  for (const int dimension : {0, 2}) {
    if (t.sizes[dimension] > 1 && (t.strides[dimension] < 0 || t.strides[dimension] >= max_slice_stride))
      return refusal::refuse(refusal::bad_stride(named, dimension, "0 (one for all) and positive, below 2^31"));
  }
  const families::Range range = families::range_of(t, sizeof(float));
  if (auto apart = check_apart({"o", &call.o}, families::range_of(call.o, element_bytes_of(call.o)), named.name, range);
      !apart)
    return apart;
  if (call.lse == nullptr) return {};
  return check_apart({"lse", call.lse}, families::range_of(*call.lse, sizeof(float)), named.name, range);
}

CacheScale cache_scale_argument(const wavejit_tensor& scale, std::uint32_t first) {
  if (scale.data == nullptr) return {};
  const auto step = [&](int dimension) { return stride_bytes(scale, dimension, sizeof(float)); };
  return {.numbers = address(scale.data) + (first * step(0)), .batch_stride = step(0), .head_stride = step(2)};
}

families::Failure bad_output_scale(const wavejit_output_scale& scale, const wavejit_tensor& o) {
  const bool of_memory = scale.o_scale != nullptr;
  if (!of_memory && scale.unused != 0)
    return refusal::bad(WAVEJIT_INVALID_ARGUMENT, "unused", std::to_string(scale.unused), "0");
  return refusal::bad(WAVEJIT_INVALID_ARGUMENT, of_memory ? "o_scale" : "o_scale_value",
                      of_memory ? refusal::pointer_text(scale.o_scale) : text_of(scale.o_scale_value),
                      std::string(of_memory ? "null" : "0") + " beside o of " + refusal::dtype_text(o.dtype) +
                          ": only o of 8 bits has a scale");
}

families::Result<void> check_scale_of_bytes(const wavejit_output_scale& scale, const wavejit_tensor& o,
                                            const wavejit_tensor& lse) {
  const auto refused = [](const char* field, const std::string& value, const std::string& accepted) {
    return refusal::refuse(refusal::bad(WAVEJIT_INVALID_ARGUMENT, field, value, accepted));
  };
  if (scale.unused != 0)
    return refusal::refuse(bad_output_scale({.o_scale = nullptr, .o_scale_value = 0, .unused = scale.unused}, o));
  if (scale.o_scale == nullptr) {
    // Their reciprocals are normal numbers, too.
    constexpr float least = 0x1p-126F;
    constexpr float most = 0x1p126F;
    if (scale.o_scale_value >= least && scale.o_scale_value <= most) return {};
    return refused("o_scale_value", text_of(scale.o_scale_value),
                   "2^-126 to 2^126 beside o of " + refusal::dtype_text(o.dtype) +
                       ", or o_scale, which is in device memory: O is divided by it");
  }
  if (scale.o_scale_value != 0)
    return refused("o_scale_value", text_of(scale.o_scale_value), "0 beside o_scale, which gives the number");
  const auto begin = reinterpret_cast<std::uintptr_t>(scale.o_scale);
  if (begin % alignof(float) != 0)
    return refused("o_scale", refusal::pointer_text(scale.o_scale), "a multiple of " + std::to_string(alignof(float)));
  const families::Range range = {.begin = begin, .end = begin + sizeof(float), .dense = true};
  if (auto apart = check_apart({"o", &o}, families::range_of(o, element_bytes_of(o)), "o_scale", range); !apart)
    return apart;
  if (lse.data == nullptr) return {};
  return check_apart({"lse", &lse}, families::range_of(lse, sizeof(float)), "o_scale", range);
}

}  // namespace wavejit::attention
