// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over 8 bits for mutations: caches, queries and keys in integers, all of Q, K and V in e4m3.
#pragma once

#include <vector>

#include "called.h"
#include "support/attention_run.h"

namespace wavejit::tests {

// attention_forward over K and V of this type, head dim 128, with a scale for each kv head of each sequence.
std::vector<CallProblem> byte_caches(wavejit_dtype type);
std::vector<CallProblem> byte_caches_in_pages(wavejit_dtype type);
// Q and K are integers, with a scale a row and head.
std::vector<CallProblem> integer_queries();
std::vector<CallProblem> byte_queries();
// Rows that walk several pairs of tiles, of which one is left over or none: e4m3, head dim 128.
std::vector<CallProblem> byte_queries_of_many_tiles();

// sparse_indexer over queries and keys of 8 bits.
std::vector<CallProblem> byte_scores(wavejit_dtype type);

}  // namespace wavejit::tests
