// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query: the fields of a call, and what kernels read of them.
#pragma once

#include "templates/attention_latent/call/problem.h"
#include "templates/attention_latent/kernel/arguments.h"

namespace wavejit::attention_latent {

inline constexpr std::int64_t max_top_k = std::int64_t{1} << 20;

inline bool has_lists(const wavejit_attention_latent_arguments& call) { return call.key_indices != nullptr; }
// k is a cache whose slots are named, whatever the sequences are.
inline bool names_slots(const wavejit_attention_latent_arguments& call) {
  return call.key_indices != nullptr && call.key_slots != 0;
}

// The fields by themselves: before sizes are looked at.
Result<void> check_list_fields(const wavejit_attention_latent_arguments& call);
// Words and numbers of a problem whose sizes stand in it.
Result<void> take_lists(const wavejit_attention_latent_arguments& call, LatentProblem& problem);
Result<void> check_device_counts(families::DeviceMemory& memory, const LatentProblem& problem,
                                 const wavejit_attention_latent_arguments& call);

// Of the queries from `first` on.
attention::KeyListArguments list_arguments(const wavejit_attention_latent_arguments& call, const LatentProblem& problem,
                                           std::uint64_t first);

}  // namespace wavejit::attention_latent
