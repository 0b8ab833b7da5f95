// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/mask.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "families/call/refusal.h"

namespace wavejit::attention {

namespace {

namespace refusal = families::refusal;
using families::Result;
using refusal::bad;
using refusal::refuse;

bool is_limit(std::int32_t limit, bool window) { return window ? limit >= -1 : limit == 0 || limit == -1; }

[[gnu::cold, gnu::noinline]] std::unexpected<families::Failure> no_limit(const char* name, std::int32_t limit,
                                                                         bool window) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, std::to_string(limit),
                    window ? "-1 (no limit), 0 and more" : "0 unless mask has WAVEJIT_MASK_WINDOW (2)"));
}

// "1 (causal), 2 (window)": those whose bits are set. `numbers` false: "causal, window".
std::string sum_of(std::int32_t bits, bool numbers = true) {
  std::string text;
  const auto add = [&](std::int32_t bit, std::string_view word) {
    if ((bits & bit) == 0) return;
    text += text.empty() ? "" : ", ";
    text += numbers ? std::to_string(bit) + " (" + std::string(word) + ")" : std::string(word);
  };
  add(WAVEJIT_MASK_CAUSAL, "causal");
  add(WAVEJIT_MASK_WINDOW, "window");
  add(WAVEJIT_MASK_PREFIX, "prefix");
  for (const MaskKind& kind : mask_kinds) add(kind.bit, kind.word);
  return text;
}
constexpr std::int32_t plain_bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX;
constexpr std::int32_t all_bits = [] {
  std::int32_t bits = plain_bits;
  for (const MaskKind& kind : mask_kinds) bits |= kind.bit;
  return bits;
}();
// What a kind may stand beside whatever else it needs.
constexpr std::int32_t other_bits(const MaskKind& kind) { return all_bits & ~(kind.bit | WAVEJIT_MASK_PREFIX); }

Result<void> check_mask_kind(const wavejit_masking& fields, const MaskKind& kind) {
  const bool there = (fields.bits & kind.bit) != 0;
  if (there && (fields.bits & other_bits(kind)) != kind.beside)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(fields.bits),
                      sum_of(kind.bit) + (kind.beside == 0 ? "" : " with " + sum_of(kind.beside) + " and") +
                          " without " + sum_of(other_bits(kind) & ~kind.beside)));
  const std::int32_t number = fields.*kind.number;
  if (there ? number >= kind.least && number <= kind.most : number == 0) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, kind.field, std::to_string(number),
                    there ? refusal::up_to(std::to_string(kind.least).c_str(), kind.most) + " keys"
                          : "0 unless mask has " + std::string(kind.bit_name) + " (" + std::to_string(kind.bit) + ")"));
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

std::string beside_text(const MaskKind& kind) {
  return (kind.beside == 0 ? "" : sum_of(kind.beside, false) + " and ") + "no " +
         sum_of(other_bits(kind) & ~kind.beside, false);
}

Result<MaskChoice> check_mask(const wavejit_masking& fields, std::int64_t keys, bool kinds, const char* other_diagonal,
                              bool has_other) {
  if ((fields.bits & ~all_bits) != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(fields.bits),
                      "0 (none), or a sum of " + sum_of(kinds ? all_bits : plain_bits)));
  const MaskKind* const kind = kind_in(fields.bits);
  if (kind != nullptr && !kinds)
    return refuse(
        bad(WAVEJIT_UNSUPPORTED, "mask", std::to_string(fields.bits),
            "0 (none), or a sum of " + sum_of(plain_bits) + "; only forward calls have " + std::string(kind->what)));
  for (const MaskKind& each : mask_kinds)
    if (auto good = check_mask_kind(fields, each); !good) return std::unexpected(good.error());
  const bool causal = (fields.bits & WAVEJIT_MASK_CAUSAL) != 0;
  const bool window = (fields.bits & WAVEJIT_MASK_WINDOW) != 0;
  const bool prefix = (fields.bits & WAVEJIT_MASK_PREFIX) != 0;
  if (!is_limit(fields.window_left, window)) return no_limit("window_left", fields.window_left, window);
  if (!is_limit(fields.window_right, window)) return no_limit("window_right", fields.window_right, window);
  if (prefix && !causal && !window && kind == nullptr && !has_other) {
    const std::string others = other_diagonal == nullptr ? std::string("1 (causal) or 2 (window)")
                                                         : "1 (causal), 2 (window) or " + std::string(other_diagonal);
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(fields.bits),
                      "4 (prefix) with " + others + ": nothing else has a diagonal"));
  }
  if (prefix ? fields.causal_prefix < 0 || fields.causal_prefix > keys : fields.causal_prefix != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "causal_prefix", std::to_string(fields.causal_prefix),
                      prefix ? refusal::up_to("0", keys) + ", the keys" : "0 unless mask has WAVEJIT_MASK_PREFIX (4)"));
  }
  if (kind != nullptr) return kind->arguments(fields.*kind->number);
  return choose_mask(causal, window, fields.window_left, fields.window_right);
}

Result<SeenKeys> check_seen_keys(const wavejit_masking& mask, std::int64_t keys) {
  const Result<MaskChoice> choice = check_mask(mask, keys);
  if (!choice) return std::unexpected(choice.error());
  const MaskChoice window = as_window(*choice);
  return SeenKeys{.bottom_right = mask.bits != WAVEJIT_MASK_NONE && (mask.bits & WAVEJIT_MASK_PREFIX) == 0,
                  .causal_prefix = static_cast<std::int32_t>(mask.causal_prefix),
                  .window_left = window.left,
                  .window_right = window.right};
}

}  // namespace wavejit::attention
