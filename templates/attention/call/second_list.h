// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second list of each query over a second cache (docs/sparse.md): the fields of a call. Every family that has one
// names its fields so: second_indices, second_counts, second_top_k, second_indices_row_stride.
#pragma once

#include <span>

#include "templates/attention/call/key_lists.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention {

// A tensor of the second cache, and the one of the first that it is like.
struct SecondTensor {
  Named second;
  Named first;
};

// The second list as if it were a call's only one.
constexpr KeyListCall second_list_of(const KeyListCall& first, const std::int32_t* indices, const std::int32_t* counts,
                                     std::int64_t top_k, std::int64_t row_stride, const wavejit_tensor& k,
                                     const wavejit_tensor& other) {
  return {.key_indices = indices,
          .key_counts = counts,
          .top_k = top_k,
          .key_indices_row_stride = row_stride,
          .key_slots = indices != nullptr ? 1 : 0,
          .key_list_heads = first.key_list_heads,
          .block_table = nullptr,
          .query_starts = nullptr,
          .key_starts = nullptr,
          .key_lengths = nullptr,
          .mask = 0,
          .k = k,
          .other = other};
}

// Checks the second list of a call whose first list's fields are good, before sizes are looked at. `kv_heads`, `dtype`:
// the first cache's.
families::Result<void> check_second_list(const KeyListCall& first, const KeyListCall& second,
                                         std::span<const SecondTensor> tensors, std::int64_t kv_heads,
                                         std::int32_t dtype);
// As check_named_keys and check_device_counts, of the second list.
families::Result<NamedKeys> check_second_keys(const KeyListCall& second, std::uint64_t batch, std::uint64_t queries);
families::Result<void> check_second_counts(families::DeviceMemory& memory, const KeyListCall& second,
                                           std::uint64_t queries);
// Their parts are merged, whatever else a call says.
inline families::WorkspaceWords words_of_two_lists() {
  return {.reason = "second_indices",
          .captured = "the parts of two lists are merged",
          .instead = "fewer sequences or entries"};
}
// More parts of a row than kernels count.
[[gnu::cold]] std::unexpected<families::Failure> refuse_parts(const KeyListCall& second, std::uint64_t most);

}  // namespace wavejit::attention
