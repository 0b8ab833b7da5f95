// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How large a call of attention may be.
#pragma once

#include <cstdint>

#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

inline constexpr std::int64_t max_head_dim = 0xFFF;  // guess: no tensor of an attention has more
// Heads are the x, batches the z dimension of the grid: HIP takes 65,535 in z, and a head is divided by multiplication
// (emit/integers.h), which is exact below 65,536 heads.
inline constexpr std::int64_t max_heads = 0xFFFF;
inline constexpr std::int64_t max_batch = 0xFFFF;
// Row numbers are 32-bit signed in the kernel, and a tile may count past the end.
inline constexpr std::int64_t max_length = 0x7FFFFFFF - 4096;
// A buffer descriptor spans less than 4 GiB.
inline constexpr std::uint64_t slice_limit_bytes = std::uint64_t{1} << 32;
// The limit of tensors whose elements are read one by one: lanes without a row must point outside (emit/scattered.h).
inline constexpr std::uint64_t scattered_limit_bytes = std::uint64_t{1} << 31;
// The most rows by which a tile, or a tile fetched ahead, stands beyond the last row.
inline constexpr std::uint64_t tile_overrun_rows = 256;
// Guess: device addresses have 48 bits on every GPU of the table; a tensor that spans more is a wrong stride.
inline constexpr std::uint64_t tensor_limit_bytes = std::uint64_t{1} << 48;
// Below it no product of a batch and its stride overflows.
inline constexpr std::int64_t max_batch_stride = std::int64_t{1} << 46;

// A soft-capped score is off by 2⁻²³ of the cap (docs/canonical-arithmetic.md, "Modifiers"): up to here by no more than
// bf16 rounds a weight.
inline constexpr float max_softcap = 0x1p15F;

// Keys in pages: what a slice bounds of dense keys is said here (emit/sequence.h counts on it), and granule numbers are
// divided by multiplication (PageArguments::page_multiplier), which is exact for these.
inline constexpr std::int64_t max_paged_length = std::int64_t{1} << 26;
inline constexpr std::int64_t max_page_size = 8192;
inline constexpr std::int64_t page_granule = 16;
inline constexpr std::int64_t max_pages = 0x7FFFFFFF;
// KeyLayout::whole_tiles. Keys behind left padding begin anywhere in a page. No page size: keys are dense.
constexpr bool holds_whole_tiles(std::int64_t page_size, bool first_keys) {
  return page_size != 0 && page_size % tile_keys == 0 && !first_keys;
}
// Elements of a vectorised page that stand together: 16 bytes.
inline constexpr std::int64_t unit_elements = 8;

// Keys that a list names for a query.
inline constexpr std::int64_t max_top_k = std::int64_t{1} << 20;

}  // namespace wavejit::attention
