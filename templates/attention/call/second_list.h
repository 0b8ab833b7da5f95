// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second list of each query over a second cache (docs/sparse.md): the fields of a call.
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

// The second list as if it were a call's only one. Whether it names slots, and how many lists a query has, the first says.
template <typename Call>
KeyListCall second_list_of(const Call& call, const wavejit_tensor& other) {
  wavejit_key_list list = call.second_list;
  list.slots = list.indices != nullptr ? 1 : 0;
  list.heads = call.key_list.heads;
  return {.list = list,
          .sequences = call.sequences,
          .pages = call.pages,
          .mask = call.mask.bits,
          .k = call.second_k,
          .other = other};
}

// Whether any field of either list says something. Hot: most calls have neither.
inline bool says_of_lists(const wavejit_key_list& first, const wavejit_key_list& second) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  return (bits(first.indices) | bits(first.counts) | bits(second.indices) | bits(second.counts)) != 0 ||
         (first.top_k | first.row_stride | first.slots | first.heads | second.top_k | second.row_stride | second.slots |
          second.heads) != 0;
}

// Checks the second list of a call whose first list's fields are good, before sizes are looked at. `given`: as the call
// has it. `kv_heads`, `dtype`: the first cache's.
families::Result<void> check_second_list(const KeyListCall& first, const KeyListCall& second,
                                         const wavejit_key_list& given, std::span<const SecondTensor> tensors,
                                         std::int64_t kv_heads, std::int32_t dtype);
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
