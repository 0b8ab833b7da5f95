// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/workspace.h"

#include <array>
#include <string>

#include "families/call/family.h"
#include "families/call/refusal.h"
#include "templates/attention/call/numbers.h"

namespace wavejit::attention {
namespace {

using families::Range;
using families::Result;
using families::surely_share;
using families::refusal::bad;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;

constexpr std::uint64_t workspace_alignment = 256;

Range range_of_numbers(const NamedNumbers& array) {
  const std::uint64_t begin = address(array.data);
  return {.begin = begin, .end = begin + (array.count * sizeof(std::int32_t)), .dense = true};
}

}  // namespace

Result<void> check_split(const wavejit_split& split) {
  if (split.splits < 0 || split.splits > families::max_splits)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "splits", std::to_string(split.splits),
                      up_to("0 (as many as fill the device), 1", families::max_splits)));
  if (address(split.workspace) % workspace_alignment != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace", pointer_text(split.workspace),
                      "null (the engine's own), or device memory aligned to 256 bytes"));
  if (split.workspace == nullptr && split.workspace_bytes != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace_bytes", std::to_string(split.workspace_bytes),
                      "0 while workspace is null"));
  return {};
}

std::array<NamedNumbers, 6> numbers_of(const wavejit_sequences& sequences, const wavejit_pages& pages,
                                       std::uint64_t count) {
  const auto columns = static_cast<std::uint64_t>(pages.table_columns);
  const bool one_after_another = pages.table_row_stride == 0 || pages.table_row_stride == pages.table_columns;
  const std::uint64_t entries = pages.table_starts != nullptr || !one_after_another ? columns : columns * count;
  return {{{"query_starts", sequences.query_starts, count + 1},
           {"key_starts", sequences.key_starts, count + 1},
           {"key_lengths", sequences.key_lengths, count},
           {"first_keys", sequences.first_keys, count},
           {"table_starts", pages.table_starts, count + 1},
           {"block_table", pages.block_table, entries}}};
}

Result<void> check_workspace(const wavejit_split& split, std::uint64_t bytes, std::span<const Named> tensors,
                             std::span<const NamedNumbers> arrays, std::span<const NamedNumbers> lists) {
  if (split.workspace == nullptr || bytes == 0) return {};
  if (split.workspace_bytes < bytes)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace_bytes", std::to_string(split.workspace_bytes),
                      std::to_string(bytes) + " and more for this call (wavejit_call_workspace says so)"));
  const std::uint64_t begin = address(split.workspace);
  const Range workspace = {.begin = begin, .end = begin + bytes, .dense = true};
  const auto taken = [&](const char* name) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace", pointer_text(split.workspace),
                      std::string("memory that ") + name + " does not use"));
  };
  for (const Named& named : tensors)
    if (named.tensor->data != nullptr &&
        surely_share(families::range_of(*named.tensor, element_bytes_of(*named.tensor)), workspace))
      return taken(named.name);
  for (const auto of : {arrays, lists})
    for (const NamedNumbers& array : of)
      if (array.data != nullptr && surely_share(range_of_numbers(array), workspace)) return taken(array.name);
  return {};
}

}  // namespace wavejit::attention
