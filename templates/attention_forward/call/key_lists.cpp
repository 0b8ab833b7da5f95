// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/key_lists.h"

#include <array>
#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention_forward/call/splits.h"

namespace wavejit::attention_forward {
namespace {

using refusal::bad;
using refusal::Named;
using refusal::refuse;

// What goes with no list.
Result<void> check_beside(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem) {
  if (const auto found = beside_key_lists(problem.shape)) [[unlikely]]
    return fail(WAVEJIT_UNSUPPORTED, "key_indices beside " + found->text());
  if (!problem.close_heads)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "lse.strides[1]", std::to_string(call.lse.strides[1]),
                      "heads that share a kv head within 2 GiB beside key_indices"));
  return {};
}

// Takes the second list into a problem that has all of the first list's.
Result<void> take_second_list(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  const auto named = attention::check_second_keys(second_list_of(call), problem.batch,
                                                  std::uint64_t{problem.batch} * problem.query_length);
  if (!named) return std::unexpected(named.error());
  for (const auto& [output, element] : {std::pair{Named{"o", &call.o}, attention::element_bytes_of(call.o)},
                                        {Named{"lse", &call.lse}, std::uint64_t{sizeof(float)}}}) {
    if (output.tensor->data == nullptr) continue;
    for (const Named& cache : {Named{"second_k", &call.second_k}, Named{"second_v", &call.second_v}})
      if (auto apart =
              attention::check_apart(output, families::range_of(*output.tensor, element), cache.name,
                                     families::range_of(*cache.tensor, attention::element_bytes_of(*cache.tensor)));
          !apart)
        return apart;
  }
  // One kernel walks both.
  if (!named->in_rows) problem.shape.paged = true;
  problem.second_top_k = static_cast<std::uint32_t>(call.second_list.top_k);
  problem.second_slots = named->slots;
  if (const std::uint64_t most = most_parts_of_lists(problem); parts_of_lists(problem) > most)
    return attention::refuse_parts(second_list_of(call), most);
  return {};
}

}  // namespace

std::optional<BesideWord> beside_key_lists(const AttentionShape& shape) {
  constexpr std::string_view masks = "causal, or no mask";
  if (has_first_key(shape.mask))
    return BesideWord{.word = has_kind(shape.mask) ? attention::kind_of(shape.mask)->what : "window",
                      .accepted = masks};
  if (shape.causal_flags) return BesideWord{.word = "causal_flags", .accepted = masks};
  if (shape.first_keys) return BesideWord{.word = "first_keys", .accepted = "no left padding"};
  if (shape.vectorised) return BesideWord{.word = "vectorised pages", .accepted = "pages of rows (nhd, hnd)"};
  if (shape.block_lists) return BesideWord{.word = "lists of key blocks", .accepted = "one of the two"};
  for (const Modifier modifier : {Modifier::bias, Modifier::alibi})
    if (shape.has(modifier))
      return BesideWord{.word = row_of(modifier).word,
                        .accepted = "no bias and no slopes, which depend on key numbers"};
  return std::nullopt;
}

Result<void> check_key_list_fields(const wavejit_attention_forward_arguments& call) {
  const attention::KeyListCall lists = key_lists_of(call);
  if (auto good = attention::check_list_fields(lists, call.k.sizes[2]); !good) return good;
  const std::array<attention::SecondTensor, 2> tensors = {
      {{{"second_k", &call.second_k}, {"k", &call.k}}, {{"second_v", &call.second_v}, {"v", &call.v}}}};
  return attention::check_second_list(lists, second_list_of(call), call.second_list, tensors, call.k.sizes[2],
                                      call.k.dtype);
}

Result<void> take_key_lists(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  if (call.key_list.indices == nullptr) [[likely]]
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
  problem.top_k = static_cast<std::uint32_t>(call.key_list.top_k);
  problem.key_list_heads = static_cast<std::uint32_t>(key_lists_of(call).lists_of_query());
  problem.uneven_lengths = false;
  if (!shape.slots) return {};
  shape.paged = !named->in_rows;
  problem.slots = problem.key_length = named->slots;
  if (call.second_list.indices != nullptr)
    if (auto second = take_second_list(call, problem); !second) return second;
  shape.single_keys = shape.paged && call.k.sizes[1] == 1;
  return {};
}

}  // namespace wavejit::attention_forward
