// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_forward for mutations: what their inputs are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/modified.h"
#include "called.h"
#include "support/attention_run.h"

namespace wavejit::tests {

void append(std::vector<std::uint32_t>& bits, const std::vector<std::uint32_t>& more);

// `lies`: lengths or tables that no answer is defined for.
CallProblem forward(const AttentionCase& which, bool lies = false);

// Keys grow every three tiles, so that maxima rise and sums are rescaled in the middle of the walk.
void grow(AttentionCase& which);

// Packed queries of these lengths, and this many keys of each sequence; two query heads a kv head.
AttentionCase sequences(const std::vector<std::int32_t>& queries, const std::vector<std::int32_t>& keys,
                        std::uint64_t seed, int heads = 4);
// `queries` dense rows a sequence behind so much padding.
AttentionCase padded(int queries, const std::vector<std::int32_t>& keys, const std::vector<std::int32_t>& firsts,
                     std::uint64_t seed, int heads = 4);
// Its numbers rounded to the type.
AttentionCase in_storage(AttentionCase which, Storage storage);
AttentionCase in_pages(AttentionCase which, const Pages& pages);
// Problems of one kernel, head dim 64, causal: rows of one tile and of two, a first tile of keys that is the last, no
// keys, more keys than two chunks; a sink, no scale, entries that are no page.
struct ForwardProblem {
  AttentionCase which;
  bool lies = false;
};
std::vector<ForwardProblem> keys_in_pages(const Pages& plain, const Pages& list);
AttentionCase in_window(AttentionCase which, int left, int right);
AttentionCase without_scale(AttentionCase which);
AttentionCase with_sink(AttentionCase which);

}  // namespace wavejit::tests
