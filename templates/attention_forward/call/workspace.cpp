// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory that a call of split keys brings: whether it is large enough, and nobody else's.
#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {

using families::Range;
using families::range_of;
using families::surely_share;
using refusal::bad;
using refusal::Named;
using refusal::refuse;

namespace {

struct NamedArray {
  const char* name;
  const std::int32_t* data;
  std::uint64_t count;
};

Range range_of_array(const NamedArray& array) {
  const auto begin = reinterpret_cast<std::uintptr_t>(array.data);
  return {.begin = begin, .end = begin + (array.count * sizeof(std::int32_t)), .dense = true};
}

// Entries from the first to the last; of rows that stand apart the first only, since what lies between may be anyone's.
std::uint64_t table_entries(const wavejit_attention_forward_arguments& call, std::uint32_t sequences) {
  const auto columns = static_cast<std::uint64_t>(call.pages.table_columns);
  const bool one_after_another =
      call.pages.table_row_stride == 0 || call.pages.table_row_stride == call.pages.table_columns;
  return call.pages.table_starts != nullptr || !one_after_another ? columns : columns * sequences;
}

}  // namespace

Result<void> check_workspace(const wavejit_attention_forward_arguments& call, std::uint32_t sequences,
                             std::uint64_t bytes) {
  if (call.split.workspace_bytes < bytes) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace_bytes", std::to_string(call.split.workspace_bytes),
                      std::to_string(bytes) + " and more for this call (wavejit_call_workspace says so)"));
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(call.split.workspace);
  const Range workspace = {.begin = begin, .end = begin + bytes, .dense = true};
  const auto taken = [&](const char* name) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace", refusal::pointer_text(call.split.workspace),
                      std::string("memory that ") + name + " does not use"));
  };
  for (const Named& named : {Named{"q", &call.q}, Named{"k", &call.k}, Named{"v", &call.v},
                             Named{"second_k", &call.second_k}, Named{"second_v", &call.second_v}, Named{"o", &call.o},
                             Named{"lse", &call.lse}, Named{"q_scale", &call.scales.q_scale},
                             Named{"k_scale", &call.scales.k_scale}, Named{"v_scale", &call.scales.v_scale},
                             Named{"bias", &call.modifiers.bias}, Named{"alibi", &call.modifiers.alibi},
                             Named{"sink", &call.modifiers.sink}, Named{"bool_mask", &call.modifiers.bool_mask}})
    if (named.tensor->data != nullptr &&
        surely_share(range_of(*named.tensor, attention::element_bytes_of(*named.tensor)), workspace))
      return taken(named.name);
  const std::uint64_t each = sequences;
  for (const NamedArray& array :
       {NamedArray{"query_starts", call.sequences.query_starts, each + 1},
        NamedArray{"key_starts", call.sequences.key_starts, each + 1},
        NamedArray{"key_lengths", call.sequences.key_lengths, each},
        NamedArray{"first_keys", call.sequences.first_keys, each},
        NamedArray{"table_starts", call.pages.table_starts, each + 1},
        NamedArray{"block_table", call.pages.block_table, table_entries(call, sequences)},
        NamedArray{"list_indices", call.blocks.list_indices, 1},
        NamedArray{"full_indices", call.blocks.full_indices, 1}, NamedArray{"list_counts", call.blocks.list_counts, 1},
        NamedArray{"full_counts", call.blocks.full_counts, 1}, NamedArray{"key_indices", call.key_list.indices, 1},
        NamedArray{"key_counts", call.key_list.counts, 1}, NamedArray{"second_indices", call.second_list.indices, 1},
        NamedArray{"second_counts", call.second_list.counts, 1}, NamedArray{"list_starts", call.blocks.list_starts, 1},
        NamedArray{"full_starts", call.blocks.full_starts, 1}})
    if (array.data != nullptr && surely_share(range_of_array(array), workspace)) return taken(array.name);
  return {};
}

}  // namespace wavejit::attention_forward
