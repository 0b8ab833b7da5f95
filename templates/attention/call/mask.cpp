// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/mask.h"

#include <algorithm>
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/kernel/local_chunks.h"

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

Result<void> check_local_chunk(const wavejit_masking& fields, bool chunked) {
  if (chunked && ((fields.bits & WAVEJIT_MASK_CAUSAL) == 0 || (fields.bits & WAVEJIT_MASK_WINDOW) != 0)) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(fields.bits),
                      "8 (chunked) with 1 (causal) and without 2 (window)"));
  }
  if (chunked ? fields.local_chunk < 1 || fields.local_chunk > most_local_chunk : fields.local_chunk != 0) {
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "local_chunk", std::to_string(fields.local_chunk),
            chunked ? refusal::up_to("1", most_local_chunk) + " keys" : "0 unless mask has WAVEJIT_MASK_CHUNKED (8)"));
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

MaskChoice choose_local_chunks(std::int64_t keys) {
  if (keys < least_local_chunk) return choose_mask(true, true, 0, 0);
  const auto chunk = static_cast<std::uint32_t>(keys);
  return {.mask = Mask::chunked,
          .left = static_cast<std::int32_t>(chunk),
          .right = static_cast<std::int32_t>(local_chunk_multiplier(chunk))};
}

Result<MaskChoice> check_mask(const wavejit_masking& fields, std::int64_t keys, bool chunks, const char* other_diagonal,
                              bool has_other) {
  constexpr std::int32_t known = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX;
  if ((fields.bits & ~(known | WAVEJIT_MASK_CHUNKED)) != 0) {
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(fields.bits),
            "0 (none), or a sum of 1 (causal), 2 (window), 4 (prefix)" + std::string(chunks ? ", 8 (chunked)" : "")));
  }
  const bool chunked = (fields.bits & WAVEJIT_MASK_CHUNKED) != 0;
  if (chunked && !chunks) {
    return refuse(bad(WAVEJIT_UNSUPPORTED, "mask", std::to_string(fields.bits),
                      "0 (none), or a sum of 1 (causal), 2 (window), 4 (prefix); "
                      "only forward calls have local chunks"));
  }
  if (auto chunk = check_local_chunk(fields, chunked); !chunk) return std::unexpected(chunk.error());
  const bool causal = (fields.bits & WAVEJIT_MASK_CAUSAL) != 0;
  const bool window = (fields.bits & WAVEJIT_MASK_WINDOW) != 0;
  const bool prefix = (fields.bits & WAVEJIT_MASK_PREFIX) != 0;
  if (!is_limit(fields.window_left, window)) return no_limit("window_left", fields.window_left, window);
  if (!is_limit(fields.window_right, window)) return no_limit("window_right", fields.window_right, window);
  if (prefix && !causal && !window && !has_other) {
    const std::string others = other_diagonal == nullptr ? std::string("1 (causal) or 2 (window)")
                                                         : "1 (causal), 2 (window) or " + std::string(other_diagonal);
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "mask", std::to_string(fields.bits),
                      "4 (prefix) with " + others + ": nothing else has a diagonal"));
  }
  if (prefix ? fields.causal_prefix < 0 || fields.causal_prefix > keys : fields.causal_prefix != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "causal_prefix", std::to_string(fields.causal_prefix),
                      prefix ? refusal::up_to("0", keys) + ", the keys" : "0 unless mask has WAVEJIT_MASK_PREFIX (4)"));
  }
  if (chunked) return choose_local_chunks(fields.local_chunk);
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
