// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel reads where keys and values lie in pages, beside its other arguments.
//
// Key n of sequence b is key n mod page of page entry(b, n / page) of the cache. The kernel's k and v are the
// cache's first page, their batch strides the distance of pages, their row strides that of the keys of a page.
// SequenceArguments::key_lengths is always there; key_starts holds first keys or is null.
//
// Vectorised pages (KeyLayout::vectorised) come in units of 16 bytes, in a head of a page:
//
//   K                [dim / 8][key] of 8 dims
//   V, by dims       [dim][key / 8] of 8 keys
//   V, by keys       [key / 8][dim] of 8 keys
//
// Their row strides are what a key takes of a unit's distance to the next 8 keys: 16 bytes of K, of V 2 or 2 · D.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::attention {

struct PageArguments {
  std::uint64_t table = 0;             // int32
  std::uint64_t table_starts = 0;      // null: a row of the table for each sequence; else CSR, int32 [batch + 1]
  std::uint64_t table_row_stride = 0;  // bytes
  std::uint32_t table_columns = 0;     // of a row; CSR: of the whole list
  std::uint32_t pages = 0;             // of the cache, ≥ 1: entries are cut to them
  std::uint32_t granules_of_page = 1;  // a granule is 16 keys; of pages of one key, 1
  std::uint32_t page_multiplier = 0;   // granule number → page, a multiplier as emit/integers.h divides by
};

static_assert(sizeof(PageArguments) == 40);

}  // namespace wavejit::attention
