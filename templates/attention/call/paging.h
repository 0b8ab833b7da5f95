// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys and values in pages of a cache, which a block table names.
#pragma once

#include <cstdint>

#include "families/call/failure.h"
#include "templates/attention/kernel/page_arguments.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// The fields of a call that describe pages. Every family that has pages names its fields so (paging_of).
struct PagingCall {
  const wavejit_tensor& k;
  const wavejit_tensor& v;
  const std::int32_t* block_table;
  const std::int32_t* table_starts;
  std::int64_t table_columns;
  std::int64_t table_row_stride;
  std::int32_t page_layout;  // of enum wavejit_page_layout
  bool first_keys;           // left padding
};
template <typename Call>
PagingCall paging_of(const Call& call) {
  return {.k = call.k,
          .v = call.v,
          .block_table = call.block_table,
          .table_starts = call.table_starts,
          .table_columns = call.table_columns,
          .table_row_stride = call.table_row_stride,
          .page_layout = call.page_layout,
          .first_keys = call.first_keys != nullptr};
}

// Needs k and v with sizes that agree, strides in range, and the keys of the longest sequence.
families::Result<void> check_pages(const PagingCall& call, std::int64_t key_length);
// Where page_layout is not 0. Needs k and v with sizes that agree.
families::Result<void> check_page_layout(const PagingCall& call);
// K and V of vectorised pages: a head of a page as one row, since nothing stands between its elements.
wavejit_tensor in_one_row(const wavejit_tensor& pages);

PageArguments page_arguments(const PagingCall& call);

}  // namespace wavejit::attention
