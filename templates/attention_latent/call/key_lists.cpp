// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/key_lists.h"

#include <string>
#include <string_view>
#include <utility>

#include "families/call/refusal.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention_latent {
namespace {

using families::refusal::bad;
using families::refusal::pointer_text;
using families::refusal::refuse;

using Call = wavejit_attention_latent_arguments;

// The shared checks name the first list's fields.
Failure renamed(Failure failure) {
  for (const auto& [first, second] :
       {std::pair<std::string_view, std::string_view>{"key_indices_row_stride", "second_indices_row_stride"},
        {"key_indices", "second_indices"},
        {"key_counts", "second_counts"},
        {"top_k", "second_top_k"},
        {"k.sizes", "second_k.sizes"}})
    if (failure.detail.starts_with(first)) {
      failure.detail.replace(0, first.size(), second);
      break;
    }
  return failure;
}

[[gnu::cold]] std::unexpected<Failure> refuse_number(const char* field, std::int64_t value,
                                                     const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, std::to_string(value), accepted));
}

// Hot: without a second list nothing is looked at twice.
Result<void> refuse_rest(const Call& call) {
  const std::string without = " without second_indices";
  if (call.second_k.data != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "second_k.data", pointer_text(call.second_k.data), "null" + without));
  if (call.second_counts != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "second_counts", pointer_text(call.second_counts), "null" + without));
  if (call.second_top_k != 0) return refuse_number("second_top_k", call.second_top_k, "0" + without);
  if (call.second_indices_row_stride != 0)
    return refuse_number("second_indices_row_stride", call.second_indices_row_stride, "0" + without);
  return {};
}

Result<void> take_second_list(const Call& call, LatentProblem& problem) {
  const auto named = attention::check_named_keys(second_list_of(call), problem.batch,
                                                 std::uint64_t{problem.batch} * problem.query_length);
  if (!named) return std::unexpected(renamed(named.error()));
  // One kernel walks both.
  if (!named->in_rows) problem.shape.pages = pages_for(call.k.sizes[1]);
  problem.second_top_k = static_cast<std::uint32_t>(call.second_top_k);
  problem.second_slots = named->slots;
  return {};
}

}  // namespace

Result<void> check_second_list(const Call& call) {
  if (!has_second_list(call)) {
    const bool nothing = call.second_k.data == nullptr && call.second_counts == nullptr &&
                         (call.second_top_k | call.second_indices_row_stride) == 0;
    return nothing ? Result<void>() : refuse_rest(call);
  }
  if (!names_slots(call))
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "second_indices", pointer_text(call.second_indices),
                      "null, or slots beside key_indices with key_slots = 1"));
  if (call.k_rope.data != nullptr)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "k_rope.data", pointer_text(call.k_rope.data),
                      "null beside second_indices: both caches have all columns in one tensor"));
  if (auto fields = attention::check_list_fields(second_list_of(call), 1); !fields)
    return std::unexpected(renamed(fields.error()));
  const families::refusal::Named second = {"second_k", &call.second_k};
  if (call.second_k.data == nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "second_k.data", "null", "the cache of second_indices"));
  if (auto sizes = attention::check_sizes(second, true, attention::max_pages); !sizes) return sizes;
  for (const int dimension : {1, 2, 3})
    if (auto size = attention::check_size(second, dimension, call.k.sizes[dimension],
                                          ("k.sizes[" + std::to_string(dimension) + "]").c_str(), false);
        !size)
      return size;
  return attention::check_tensor(second, {.dtype = call.q.dtype});
}

Result<void> check_second_counts(families::DeviceMemory& memory, const LatentProblem& problem, const Call& call) {
  auto counts = attention::check_device_counts(memory, second_list_of(call), problem.query_rows);
  if (!counts) return std::unexpected(renamed(counts.error()));
  return {};
}

Result<void> take_lists(const wavejit_attention_latent_arguments& call, LatentProblem& problem) {
  if (!has_lists(call)) return {};
  LatentShape& shape = problem.shape;
  shape.listed = true;
  shape.slots = names_slots(call);
  shape.mask = Mask::none;
  shape.rows = rows_for(problem.heads);
  problem.top_k = static_cast<std::uint32_t>(call.top_k);
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
