// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query (docs/sparse.md): the fields of a call, and what kernels read of them.
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/key_list_arguments.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// Whether entries are slots of the cache, whatever the sequences are.
constexpr bool names_slots(const wavejit_key_list& list) { return list.indices != nullptr && list.slots != 0; }

// A list of a call, and what of the call its checks look at.
struct KeyListCall {
  wavejit_key_list list;
  // What slots make senseless.
  const wavejit_sequences& sequences;
  const wavejit_pages& pages;
  std::int32_t mask;
  // The cache: both tensors of which a key is.
  const wavejit_tensor& k;
  const wavejit_tensor& other;

  bool has_lists() const { return list.indices != nullptr; }
  bool names_slots() const { return attention::names_slots(list); }
  std::int64_t lists_of_query() const { return list.heads > 0 ? list.heads : 1; }
};
template <typename Call>
KeyListCall first_list_of(const Call& call, const wavejit_tensor& other) {
  return {.list = call.key_list,
          .sequences = call.sequences,
          .pages = call.pages,
          .mask = call.mask.bits,
          .k = call.k,
          .other = other};
}

// The fields by themselves: before sizes are looked at. `kv_heads`: lists that a query may have beside one.
families::Result<void> check_list_fields(const KeyListCall& call, std::int64_t kv_heads);

// How the keys stand that entries name.
struct NamedKeys {
  std::uint32_t slots = 0;  // of the cache, where lists name slots
  // Pages follow each other without gaps, so that a slot is a row.
  bool in_rows = false;
};
// `queries`: the queries of all sequences, counted as the grid counts them.
families::Result<NamedKeys> check_named_keys(const KeyListCall& call, std::uint64_t batch, std::uint64_t queries);

// WAVEJIT_CHECK_LENGTHS: finds counts beyond the entries of a list. `queries`: the rows of counts.
families::Result<void> check_device_counts(families::DeviceMemory& memory, const KeyListCall& call,
                                           std::uint64_t queries);

// The arguments for the queries from `first` on.
KeyListArguments list_arguments(const KeyListCall& call, std::uint32_t slots, bool causal, std::uint64_t first);
constexpr std::uint32_t parts_of_list(std::uint64_t entries) {
  return static_cast<std::uint32_t>((entries + list_chunk_keys - 1) / list_chunk_keys);
}

}  // namespace wavejit::attention
