// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/second_list.h"

#include <string>
#include <string_view>
#include <utility>

#include "families/call/refusal.h"
#include "templates/attention/call/limits.h"

namespace wavejit::attention {
namespace {

using families::Failure;
using families::Result;
using families::refusal::bad;
using families::refusal::pointer_text;
using families::refusal::refuse;

// The checks of a list name the first one's fields.
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

[[gnu::cold, gnu::noinline]] Result<void> refuse_rest(const wavejit_key_list& list,
                                                      std::span<const SecondTensor> tensors) {
  const std::string without = " without second_indices";
  for (const auto& [second, first] : tensors)
    if (second.tensor->data != nullptr)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(second.name) + ".data", pointer_text(second.tensor->data),
                        "null" + without));
  if (list.counts != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "second_counts", pointer_text(list.counts), "null" + without));
  for (const auto& [field, value] : {std::pair{"second_top_k", list.top_k},
                                     {"second_indices_row_stride", list.row_stride},
                                     {"second_list.slots", list.slots},
                                     {"second_list.heads", list.heads}})
    if (value != 0) return refuse_number(field, value, "0" + without);
  return {};
}

}  // namespace

// Hot: without a second list nothing is looked at twice.
Result<void> check_second_list(const KeyListCall& first, const KeyListCall& second, const wavejit_key_list& given,
                               std::span<const SecondTensor> tensors, std::int64_t kv_heads, std::int32_t dtype) {
  if (!second.has_lists()) [[likely]] {
    bool nothing = given.counts == nullptr && (given.top_k | given.row_stride | given.slots | given.heads) == 0;
    for (const SecondTensor& each : tensors) nothing = nothing && each.second.tensor->data == nullptr;
    return nothing ? Result<void>() : refuse_rest(given, tensors);
  }
  if (!first.names_slots())
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "second_indices", pointer_text(given.indices),
                      "null, or slots beside key_indices with key_slots = 1"));
  if (given.slots != 0 && given.slots != 1)
    return refuse_number("second_list.slots", given.slots, "1, or 0: as key_list says");
  if (given.heads != 0 && given.heads != first.lists_of_query())
    return refuse_number("second_list.heads", given.heads,
                         "0, or " + std::to_string(first.lists_of_query()) + ", the lists of a query in key_list");
  if (auto fields = check_list_fields(second, kv_heads); !fields) return std::unexpected(renamed(fields.error()));
  for (const auto& [named, like] : tensors) {
    const auto& sizes = named.tensor->sizes;
    // A cache without keys need not be anywhere.
    if (named.tensor->data == nullptr && (sizes[0] == 0 || sizes[1] != 0))
      return refuse(
          bad(WAVEJIT_INVALID_ARGUMENT, std::string(named.name) + ".data", "null", "the cache of second_indices"));
    if (auto good = check_sizes(named, true, max_pages); !good) return good;
    for (const int dimension : {1, 2, 3}) {
      const std::string source = std::string(like.name) + ".sizes[" + std::to_string(dimension) + "]";
      if (auto size = check_size(named, dimension, like.tensor->sizes[dimension], source.c_str(), false); !size)
        return size;
    }
    if (auto pages = check_size(named, 0, tensors.front().second.tensor->sizes[0], "second_k.sizes[0]", false); !pages)
      return pages;
    if (auto tensor = check_tensor(named, {.dtype = dtype, .read_only = true}); !tensor) return tensor;
  }
  return {};
}

Result<NamedKeys> check_second_keys(const KeyListCall& second, std::uint64_t batch, std::uint64_t queries) {
  auto named = check_named_keys(second, batch, queries);
  if (!named) return std::unexpected(renamed(named.error()));
  return named;
}

Result<void> check_second_counts(families::DeviceMemory& memory, const KeyListCall& second, std::uint64_t queries) {
  auto counts = check_device_counts(memory, second, queries);
  if (!counts) return std::unexpected(renamed(counts.error()));
  return {};
}

std::unexpected<Failure> refuse_parts(const KeyListCall& second, std::uint64_t most) {
  return refuse_number("second_top_k", second.list.top_k,
                       "entries of which, with those of the first list, kernels can merge the parts: up to " +
                           std::to_string(most) + " chunks of " + std::to_string(list_chunk_keys) + " in all");
}

}  // namespace wavejit::attention
