// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/refusal.h"

#include <array>
#include <string_view>

namespace wavejit::families::refusal {
namespace {

constexpr std::array<const char*, 4> dimension_names = {"batch", "length", "heads", "head dim"};

std::string element(const Named& named, const char* member, int dimension) {
  return field(named, member) + "[" + std::to_string(dimension) + "] (" + dimension_names[dimension] + ")";
}

}  // namespace

std::string field(const Named& named, const char* member) { return std::string(named.name) + "." + member; }

Failure bad(wavejit_status status, std::string where, const std::string& value, const std::string& accepted) {
  return {status, std::move(where) + " = " + value + "; accepted: " + accepted};
}

std::unexpected<Failure> refused(const std::string& where, const std::string& value, const std::string& accepted,
                                 wavejit_status status) {
  return refuse(bad(status, where, value, accepted));
}

std::string pointer_text(const void* pointer) {
  if (pointer == nullptr) return "null";
  static constexpr std::string_view digits = "0123456789abcdef";
  auto address = reinterpret_cast<std::uintptr_t>(pointer);
  std::string text;
  for (; address != 0; address >>= 4U) text.insert(text.begin(), digits[address & 15U]);
  return "0x" + text;
}

std::string dtype_text(std::int32_t dtype) {
  switch (dtype) {
    case WAVEJIT_FP16:
      return "1 (fp16)";
    case WAVEJIT_BF16:
      return "2 (bf16)";
    case WAVEJIT_FP32:
      return "3 (fp32)";
    case WAVEJIT_E4M3:
      return "4 (e4m3)";
    case WAVEJIT_E5M2:
      return "5 (e5m2)";
    case WAVEJIT_E4M3_FNUZ:
      return "6 (e4m3_fnuz)";
    case WAVEJIT_INT8:
      return "8 (int8)";
    case WAVEJIT_E5M2_FNUZ:
      return "7 (e5m2_fnuz)";
    default:
      return std::to_string(dtype);
  }
}

Failure bad_pointer(const Named& named, std::uintptr_t alignment) {
  return bad(WAVEJIT_INVALID_ARGUMENT, field(named, "data"), pointer_text(named.tensor->data),
             "device memory aligned to " + std::to_string(alignment) + " bytes");
}

Failure bad_size(const Named& named, int dimension, const std::string& accepted, wavejit_status status) {
  return bad(status, element(named, "sizes", dimension), std::to_string(named.tensor->sizes[dimension]), accepted);
}

Failure bad_stride(const Named& named, int dimension, const std::string& accepted) {
  return bad(WAVEJIT_INVALID_ARGUMENT, element(named, "strides", dimension),
             std::to_string(named.tensor->strides[dimension]), accepted);
}

std::string up_to(const char* from, std::int64_t most) { return std::string(from) + " to " + std::to_string(most); }

Failure mismatch(const Named& named, int dimension, std::int64_t wanted, const char* source) {
  return bad_size(named, dimension, std::to_string(wanted) + " (" + source + ")");
}

}  // namespace wavejit::families::refusal
