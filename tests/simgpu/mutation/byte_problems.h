// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over 8 bits for mutations: caches, queries and keys in integers, all of Q, K and V in e4m3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "called.h"
#include "forward_problems.h"
#include "support/attention_run.h"

namespace wavejit::tests {

enum class ByteScales : std::uint8_t { heads, tokens };  // of each sequence's kv heads, or of their tokens

// attention_forward over K and V of this type.
std::vector<CallProblem> byte_caches(wavejit_dtype type, ByteScales scales, int head_dim);
// By few workgroups, head dim 64.
std::vector<CallProblem> few_byte_caches(wavejit_dtype type, ByteScales scales, Storage storage = Storage::bf16);
// `more`: cases behind those of keys in pages.
std::vector<CallProblem> byte_caches_in_pages(wavejit_dtype type, ByteScales scales, Storage storage = Storage::bf16,
                                              const std::vector<ForwardProblem>& more = {});
// Q and K are integers, with a scale a row and head.
std::vector<CallProblem> integer_queries();
std::vector<CallProblem> byte_queries();
std::vector<CallProblem> few_byte_queries();
// Rows that walk several pairs of tiles, of which one is left over or none: e4m3, head dim 128.
std::vector<CallProblem> byte_queries_of_many_tiles();

// attention_latent over rows of this format: "cache=e4m3 cache_scales=1", "cache=e4m3 row_scales=128". `dims` is the
// descriptor's word: "d576/512".
std::vector<CallProblem> latent_bytes(const std::string& dims, const std::string& format);
// Causal calls with few workgroups. Their diagonals leave every possible number of keys in a tile.
std::vector<CallProblem> few_latent_bytes(const std::string& dims, const std::string& format);

// sparse_indexer over queries and keys of 8 bits.
std::vector<CallProblem> byte_scores(wavejit_dtype type);
std::vector<CallProblem> byte_scores_in_pages(wavejit_dtype type);

}  // namespace wavejit::tests
