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
  const auto columns = static_cast<std::uint64_t>(call.table_columns);
  const bool one_after_another = call.table_row_stride == 0 || call.table_row_stride == call.table_columns;
  return call.table_starts != nullptr || !one_after_another ? columns : columns * sequences;
}

}  // namespace

Result<void> check_workspace(const wavejit_attention_forward_arguments& call, std::uint32_t sequences,
                             std::uint64_t bytes) {
  if (call.workspace_bytes < bytes) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace_bytes", std::to_string(call.workspace_bytes),
                      std::to_string(bytes) + " and more for this call (wavejit_attention_forward_workspace says so)"));
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(call.workspace);
  const Range workspace = {.begin = begin, .end = begin + bytes, .dense = true};
  const auto taken = [&](const char* name) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace", refusal::pointer_text(call.workspace),
                      std::string("memory that ") + name + " does not use"));
  };
  for (const Named& named : {Named{"q", &call.q}, Named{"k", &call.k}, Named{"v", &call.v},
                             Named{"second_k", &call.second_k}, Named{"second_v", &call.second_v}, Named{"o", &call.o},
                             Named{"lse", &call.lse}, Named{"q_scale", &call.q_scale}, Named{"k_scale", &call.k_scale},
                             Named{"v_scale", &call.v_scale}, Named{"bias", &call.bias}, Named{"alibi", &call.alibi},
                             Named{"sink", &call.sink}, Named{"bool_mask", &call.bool_mask}})
    if (named.tensor->data != nullptr &&
        surely_share(range_of(*named.tensor, attention::element_bytes_of(*named.tensor)), workspace))
      return taken(named.name);
  const std::uint64_t each = sequences;
  for (const NamedArray& array :
       {NamedArray{"query_starts", call.query_starts, each + 1}, NamedArray{"key_starts", call.key_starts, each + 1},
        NamedArray{"key_lengths", call.key_lengths, each}, NamedArray{"first_keys", call.first_keys, each},
        NamedArray{"table_starts", call.table_starts, each + 1},
        NamedArray{"block_table", call.block_table, table_entries(call, sequences)},
        NamedArray{"list_indices", call.list_indices, 1}, NamedArray{"full_indices", call.full_indices, 1},
        NamedArray{"list_counts", call.list_counts, 1}, NamedArray{"full_counts", call.full_counts, 1},
        NamedArray{"key_indices", call.key_indices, 1}, NamedArray{"key_counts", call.key_counts, 1},
        NamedArray{"second_indices", call.second_indices, 1}, NamedArray{"second_counts", call.second_counts, 1},
        NamedArray{"list_starts", call.list_starts, 1}, NamedArray{"full_starts", call.full_starts, 1}})
    if (array.data != nullptr && surely_share(range_of_array(array), workspace)) return taken(array.name);
  return {};
}

}  // namespace wavejit::attention_forward
