// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/key_lists.h"

#include <string>

#include "families/call/refusal.h"

namespace wavejit::attention_forward {
namespace {

using refusal::bad;
using refusal::refuse;

// What goes with no list.
Result<void> check_beside(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem) {
  const std::string beside = " beside key_indices";
  const AttentionShape& shape = problem.shape;
  if (shape.mask == Mask::window)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "mask", std::to_string(call.mask),
                      "0 (none), or WAVEJIT_MASK_CAUSAL with or without WAVEJIT_MASK_PREFIX" + beside));
  if (shape.first_keys)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "first_keys", refusal::pointer_text(call.first_keys), "null" + beside));
  if (shape.vectorised)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "page_layout", std::to_string(call.page_layout), "0" + beside));
  if (shape.block_lists)
    return refuse(bad(WAVEJIT_UNSUPPORTED, call.list_indices != nullptr ? "list_indices" : "full_indices",
                      refusal::pointer_text(call.list_indices != nullptr ? call.list_indices : call.full_indices),
                      "null" + beside));
  for (const auto& [modifier, name, tensor] :
       {std::tuple{Modifier::bias, "bias", &call.bias}, {Modifier::alibi, "alibi", &call.alibi}})
    if (shape.has(modifier))
      return refuse(bad(WAVEJIT_UNSUPPORTED, std::string(name) + ".data", refusal::pointer_text(tensor->data),
                        "null" + beside + ": scores of places have none"));
  if (!problem.close_heads)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "lse.strides[1]", std::to_string(call.lse.strides[1]),
                      "heads that share a kv head within 2 GiB" + beside));
  return {};
}

}  // namespace

Result<void> take_key_lists(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  if (call.key_indices == nullptr) [[likely]]
    return {};
  if (auto good = check_beside(call, problem); !good) return good;
  const auto named = attention::check_named_keys(key_lists_of(call), problem.batch,
                                                 std::uint64_t{problem.batch} * problem.query_length);
  if (!named) return std::unexpected(named.error());
  AttentionShape& shape = problem.shape;
  problem.causal = shape.mask == Mask::causal;
  shape.listed = true;
  shape.slots = names_slots(call);
  shape.mask = Mask::none;
  shape.whole_tiles = false;
  shape.set_rows(rows_of_key_lists(problem.group()));
  problem.top_k = static_cast<std::uint32_t>(call.top_k);
  problem.key_list_heads = static_cast<std::uint32_t>(key_lists_of(call).lists_of_query());
  problem.uneven_lengths = false;
  if (!shape.slots) return {};
  shape.paged = !named->in_rows;
  shape.single_keys = shape.paged && call.k.sizes[1] == 1;
  problem.slots = problem.key_length = named->slots;
  return {};
}

}  // namespace wavejit::attention_forward
