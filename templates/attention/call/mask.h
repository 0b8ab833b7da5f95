// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mask of a call: checked, and as kernels know it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "families/call/call_head.h"
#include "families/call/failure.h"
#include "templates/attention/kernel/arguments.h"
#include "templates/attention/kernel/mask_kinds.h"
#include "templates/attention/kernel/types.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// What bits and limits amount to, without a kind of masks.def.
MaskChoice choose_mask(bool causal, bool window, std::int64_t left, std::int64_t right);
// "causal and no window": what must stand beside the kind and what must not.
std::string beside_text(const MaskKind& kind);
// The same for kernels that know windows only: keys left and right of the diagonal.
constexpr MaskChoice as_window(MaskChoice choice) {
  if (choice.mask == Mask::causal) choice.right = 0;
  return choice;
}

// How many of `keys` lie up to the diagonal of the last of `rows`, under a causal mask whose diagonal begins at key
// `prefix`. No row sees later keys, and kernels that are given this length do not multiply their values, which may
// be NaN. If the diagonal ends at the last key, there are no later keys.
constexpr std::uint32_t keys_to_last_diagonal(std::uint32_t keys, std::uint32_t rows, std::int32_t prefix) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(keys, std::uint64_t{rows} + static_cast<std::uint32_t>(prefix)));
}

// `keys`: those of the longest sequence. `other_diagonal`: what else of such a call has a diagonal, as refusals name it
// ("alibi"; null: nothing), and whether this call has it. `kinds`: the family has those of masks.def.
families::Result<MaskChoice> check_mask(const wavejit_masking& mask, std::int64_t keys, bool kinds = false,
                                        const char* other_diagonal = nullptr, bool has_other = false);

// The fields of masks.def, of a family whose calls have none of its kinds.
template <typename Arguments, std::size_t count>
constexpr auto without_mask_kinds(const std::array<families::AbsentField, count>& others) {
  std::array<families::AbsentField, mask_kinds.size() + count> absent{};
  for (std::size_t i = 0; i < mask_kinds.size(); ++i)
    absent[i] = {mask_kinds[i].field, offsetof(Arguments, mask) + mask_kinds[i].at, sizeof(std::int32_t)};
  std::ranges::copy(others, absent.begin() + mask_kinds.size());
  return absent;
}

// Which keys a row sees, for kernels that know windows only: those around its diagonal, which begins at key
// `causal_prefix` or ends at the last key.
struct SeenKeys {
  bool bottom_right = true;
  std::int32_t causal_prefix = 0;
  std::int32_t window_left = unlimited_window;
  std::int32_t window_right = unlimited_window;
};
// What a mask of `keys` keys, once it is checked, comes to.
families::Result<SeenKeys> check_seen_keys(const wavejit_masking& mask, std::int64_t keys);
constexpr SeenArguments seen_arguments(std::uint32_t query_length, std::uint32_t key_length, const SeenKeys& seen) {
  return {.query_length = query_length,
          .key_length = key_length,
          .causal_offset = seen.causal_prefix,
          .bottom_right_mask = seen.bottom_right ? ~std::uint32_t{0} : 0,
          .window_left = seen.window_left,
          .window_right = seen.window_right};
}

}  // namespace wavejit::attention
