// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of descriptors that are both read (described_words.cpp) and written (descriptor.cpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "families/kernel/names.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/walks/lists.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

inline constexpr std::string_view family_word = ForwardKernel::family;
inline constexpr std::string_view paged_word = "paged";
// Orders of a page (layout=paged:<n>:<order>): V by dims, by keys.
inline constexpr std::string_view vectorised_word = "vectorised";
inline constexpr std::string_view vectorised_keys_word = "vectorised_keys";
// Pages have a size beside the name.
inline constexpr families::Names<Layout, 3> layouts = {
    {{Layout::bshd, "bshd"}, {Layout::bhsd, "bhsd"}, {Layout::packed, "packed"}}};

inline BlockLists lists_of(const ProblemDescriptor& descriptor) {
  return {.rows = static_cast<std::uint32_t>(descriptor.lists.rows),
          .keys = static_cast<std::uint32_t>(descriptor.lists.keys),
          .alike = (descriptor.hints & WAVEJIT_LISTS_ALIKE) != 0};
}
// Whether heads have bool masks of their own.
inline bool by_head(const ProblemDescriptor& descriptor) {
  return descriptor.query_heads > 1 &&
         (descriptor.bool_mask == attention::Extent::head || descriptor.bool_mask == attention::Extent::batch_and_head);
}
inline bool makes_walks_of_mask(const ProblemDescriptor& descriptor, std::int64_t query_length) {
  return descriptor.shape.bool_mask && !splits_bool_mask(descriptor.shape, query_length, by_head(descriptor));
}
inline RowPlan rows_of(const ProblemDescriptor& descriptor, std::int64_t query_length) {
  if (makes_walks_of_mask(descriptor, query_length) ||
      (descriptor.shape.bias_by_tile && bias_goes_by_tile(query_length)))
    return {.rows = query_rows(static_cast<std::uint64_t>(query_length))};
  if (descriptor.shape.block_lists && !descriptor.shape.bias_by_tile && !descriptor.shape.bool_mask)
    return rows_of_lists(lists_of(descriptor), static_cast<std::uint64_t>(query_length));
  return plan_rows(static_cast<std::uint64_t>(query_length),
                   static_cast<std::uint64_t>(descriptor.query_heads / descriptor.kv_heads));
}

// check_lengths.cpp. Lists have one length a sequence, and the longest is what q or k says (of dense keys: at most).
Result<void> check_lengths(const ProblemDescriptor& descriptor);

}  // namespace wavejit::attention_forward
