// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/flags.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

#include "families/call/refusal.h"
#include "templates/attention/call/hints.h"

namespace wavejit::attention {

namespace {

using families::Result;
using families::refusal::bad;
using families::refusal::refuse;

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 7> names = {
    {{WAVEJIT_CHECK_LENGTHS, "check the lengths"},
     {WAVEJIT_SCALE_IS_ZERO, "the scale is zero"},
     {WAVEJIT_NO_COMPILE, "no compile"},
     {WAVEJIT_COMPILE_BEHIND, "compile behind"},
     {WAVEJIT_ONE_LAUNCH, "one launch"},
     {WAVEJIT_TWO_LAUNCHES, "two launches"},
     {WAVEJIT_BIAS_BY_TILE, "bias by tile"}}};

std::string sum_of(std::uint32_t known) {
  std::string text = "0, or a sum of ";
  bool first = true;
  const auto add = [&](std::uint32_t flag, std::string_view name) {
    if ((known & flag) == 0) return;
    text += (std::exchange(first, false) ? "" : ", ") + std::to_string(flag) + " (" + std::string(name) + ")";
  };
  for (const auto& [flag, name] : names) add(flag, name);
  for (const Hint& hint : hints) add(hint.bit, hint.told);
  return text;
}

}  // namespace

Result<void> check_flags(std::uint32_t flags, std::uint32_t known, float scale) {
  if ((flags & ~known) != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "flags", std::to_string(flags), sum_of(known)));
  if ((flags & WAVEJIT_SCALE_IS_ZERO) != 0 && scale != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "scale", std::to_string(scale),
                      "0 beside WAVEJIT_SCALE_IS_ZERO, or no such flag"));
  if ((flags & WAVEJIT_COMPILE_BEHIND) != 0 && (flags & WAVEJIT_NO_COMPILE) == 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "flags", std::to_string(flags),
                      "16 (compile behind) beside 8 (no compile) only"));
  constexpr std::uint32_t both = WAVEJIT_ONE_LAUNCH | WAVEJIT_TWO_LAUNCHES;
  if ((flags & both) == both)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "flags", std::to_string(flags),
                      "32 (one launch) or 64 (two launches), or neither"));
  return {};
}

Result<float> check_scale(float scale, std::uint32_t flags, float otherwise) {
  const float scale_log2e = meant_scale(scale, flags, otherwise) * std::numbers::log2e_v<float>;
  if (std::isfinite(scale_log2e)) return scale_log2e;
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "scale", std::to_string(scale),
                    "finite values whose product with log2 e is finite in fp32"));
}

}  // namespace wavejit::attention
