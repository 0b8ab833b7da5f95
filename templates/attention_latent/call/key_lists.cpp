// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/key_lists.h"

#include <array>

#include "families/call/refusal.h"

namespace wavejit::attention_latent {
namespace {

using families::refusal::bad;
using families::refusal::pointer_text;
using families::refusal::refuse;

using Call = wavejit_attention_latent_arguments;

Result<void> take_second_list(const Call& call, LatentProblem& problem) {
  const auto named = attention::check_second_keys(second_list_of(call), problem.batch,
                                                  std::uint64_t{problem.batch} * problem.query_length);
  if (!named) return std::unexpected(named.error());
  // One kernel walks both.
  if (!named->in_rows) problem.shape.pages = pages_for(call.k.sizes[1]);
  problem.second_top_k = static_cast<std::uint32_t>(call.second_list.top_k);
  problem.second_slots = named->slots;
  const std::uint64_t parts =
      std::uint64_t{attention::parts_of_list(problem.top_k)} + attention::parts_of_list(problem.second_top_k);
  if (parts > most_chunks) return attention::refuse_parts(second_list_of(call), most_chunks);
  return {};
}

}  // namespace

Result<void> check_list_fields(const Call& call) {
  if (auto first = attention::check_list_fields(lists_of(call), 1); !first) return first;
  const families::refusal::Named k = {"k", &call.k};
  const std::array<attention::SecondTensor, 1> tensors = {{{{"second_k", &call.second_k}, k}}};
  if (auto good = attention::check_second_list(lists_of(call), second_list_of(call), call.second_list, tensors, 1,
                                               call.k.dtype);
      !good)
    return good;
  if (has_second_list(call) && call.k_rope.data != nullptr)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "k_rope.data", pointer_text(call.k_rope.data),
                      "null beside second_indices: both caches have all columns in one tensor"));
  return {};
}

Result<void> take_lists(const wavejit_attention_latent_arguments& call, LatentProblem& problem) {
  if (!has_lists(call)) return {};
  LatentShape& shape = problem.shape;
  shape.listed = true;
  shape.slots = names_slots(call);
  shape.mask = Mask::none;
  shape.rows = rows_for(problem.heads);
  problem.top_k = static_cast<std::uint32_t>(call.key_list.top_k);
  problem.uneven_lengths = false;
  const auto named =
      attention::check_named_keys(lists_of(call), problem.batch, std::uint64_t{problem.batch} * problem.query_length);
  if (!named) return std::unexpected(named.error());
  if (!shape.slots) return {};
  shape.pages = named->in_rows ? Pages::dense : pages_for(call.k.sizes[1]);
  problem.slots = named->slots;
  problem.key_length = named->slots;
  return has_second_list(call) ? take_second_list(call, problem) : Result<void>();
}

}  // namespace wavejit::attention_latent
