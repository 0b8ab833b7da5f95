// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel reads beside its other arguments where a list in device memory names the keys of each query
// (docs/sparse.md, Lists of keys).
//
// A list is walked by place: chunks are list_chunk_keys of its entries. A second list, over a second cache, is walked
// by a launch of its own, whose chunks count behind those of the first.
#pragma once

#include <cstdint>

namespace wavejit::attention {

struct KeyListArguments {
  std::uint64_t indices = 0;      // int32, of each query of all sequences one list, or one for each kv head
  std::uint64_t counts = 0;       // int32 [queries][lists]: how many entries of the list count; null: all
  std::uint64_t row_stride = 0;   // bytes from a query's first list to that of the next
  std::uint64_t head_stride = 0;  // bytes from list to list of a query; 0: all heads have one
  std::uint32_t length = 0;       // entries of a list
  std::uint32_t slots = 0;        // of the cache; of listed slots
  std::uint32_t heads = 1;        // lists of a query
  std::uint32_t causal = 0;       // whether the diagonal hides keys
  // Read by kernels that leave parts, and by the kernel that merges them. Parts of a row, of both lists; those before
  // the walk's own; the second list's counts, entries and parts before it.
  std::uint64_t second_counts = 0;
  std::uint32_t parts = 0;
  std::uint32_t first_part = 0;
  std::uint32_t second_length = 0;
  std::uint32_t second_first_part = 0;
};

static_assert(sizeof(KeyListArguments) == 72);

}  // namespace wavejit::attention
