// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel arguments of attention_forward where keys and values lie in pages: those of dense keys, then these.
//
// Key n of sequence b is key n mod page of page entry(b, n / page) of the cache. Of Arguments, k and v are the cache's
// first page, k_batch_stride and v_batch_stride the distance of pages, the row strides that of the keys of a page, and
// key_lengths is always there; key_starts holds first keys or is null.
//
// Vectorised pages (KernelSpec::vectorised) come in units of 16 bytes, in a head of a page:
//
//   K                [dim / 8][key] of 8 dims
//   V, by dims       [dim][key / 8] of 8 keys
//   V, by keys       [key / 8][dim] of 8 keys
//
// Their row strides are what a key takes of a unit's distance to the next 8 keys: 16 bytes of K, of V 2 or 2 · D.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/arguments.h"

namespace wavejit::attention_forward {

struct PageArguments {
  std::uint64_t table = 0;             // int32
  std::uint64_t table_starts = 0;      // null: a row of the table for each sequence; else CSR, int32 [batch + 1]
  std::uint64_t table_row_stride = 0;  // bytes
  std::uint32_t table_columns = 0;     // of a row; CSR: of the whole list
  std::uint32_t pages = 0;             // of the cache, ≥ 1: entries are cut to them
  std::uint32_t granules_of_page = 1;  // a granule is 16 keys; of pages of one key, 1
  std::uint32_t page_multiplier = 0;   // granule number → page, as Arguments::kv_head_multiplier
};

struct PagedArguments {
  Arguments all;
  PageArguments pages;
};

// Of a field of PageArguments, where the kernel finds it.
constexpr std::size_t page_field(std::size_t offset) { return offsetof(PagedArguments, pages) + offset; }

static_assert(sizeof(PagedArguments) == 344);
static_assert(offsetof(PagedArguments, pages) == sizeof(Arguments));

}  // namespace wavejit::attention_forward
