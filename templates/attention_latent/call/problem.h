// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of attention_latent in plain numbers: what is left of the struct when every field was looked at.
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/paging.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention_latent/kernel/spec.h"
#include "templates/attention_latent/kernel/words.h"

namespace wavejit::attention_latent {

using families::fail;
using families::Failure;
using families::Result;

const families::Family& family();

using attention::max_batch;
using attention::max_length;
inline constexpr std::int64_t max_heads = 128;
using families::max_splits;
// Chunks of a row whose parts are merged: two million keys. Offsets of records then stay inside a descriptor.
inline constexpr std::uint64_t most_chunks = 2048;

// Everything of a call that changes code.
using LatentShape = families::ShapeOf<AskedWords, families::BitsOfTable<decltype(word_table)>, family>;
// The shape of a walk over runs, or over all keys: scalar registers of the latter have no room for pages of whole
// tiles, so it looks granules up.
inline LatentShape of_runs(LatentShape shape, bool several, bool merged) {
  shape.parts = several;
  shape.merged = several && merged;
  if ((!several || shape.listed) && shape.pages == Pages::tiles) shape.pages = Pages::granules;
  return shape;
}

// Pointers and strides stay where the caller put them.
struct LatentProblem {
  LatentShape shape;
  std::uint32_t batch = 0;         // sequences
  std::uint32_t query_length = 0;  // of packed queries: the longest
  std::uint32_t key_length = 0;
  std::uint32_t heads = 0;
  float scale_log2e = 0;
  bool bottom_right = true;
  std::int32_t causal_prefix = 0;
  std::uint64_t query_rows = 0;                                 // queries of all sequences
  std::uint32_t splits = 0;                                     // 0: the caller did not say
  attention::Launches launches = attention::Launches::planned;  // of several runs
  bool packed_queries = false;
  bool uneven_lengths = false;     // sequences may have fewer keys than key_length
  bool causal = false;             // whether the diagonal hides keys; kernels of lists have no word for it
  std::uint32_t top_k = 0;         // entries of each query's list; 0: no lists
  std::uint32_t slots = 0;         // of the cache, where lists name slots
  std::uint32_t second_top_k = 0;  // entries of a second list, over a cache of second_slots slots; 0: none
  std::uint32_t second_slots = 0;

  bool operator==(const LatentProblem&) const = default;
  // What a row walks, and how much of it is a chunk.
  std::uint32_t walked_keys() const { return shape.listed ? top_k : key_length; }
  std::uint32_t chunk_keys() const { return static_cast<std::uint32_t>(shape.chunk_keys()); }
};

// How many rows a workgroup has, for sequences of `rows` rows (a head of a query each); with lists, for a query of
// `rows` heads. take_rows and plan_splits (splits.h) have the last word.
constexpr Rows rows_for(std::uint64_t rows) {
  return rows <= count_of(Rows::r32) ? Rows::r32 : rows <= count_of(Rows::r64) ? Rows::r64 : Rows::r128;
}
constexpr Pages pages_for(std::int64_t page_size) {
  if (page_size == 0) return Pages::dense;
  if (page_size == 1) return Pages::keys;
  return attention::holds_whole_tiles(page_size, false) ? Pages::tiles : Pages::granules;
}

// As the target has it by default, or as a developer pins it: tile_queries=32 or 64 behind the pipeline's name.
// Where more than 64 are at hand, plan_splits chooses.
void take_rows(LatentProblem& problem, const targets::Target& target, const families::Toggles& toggles);

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<LatentProblem> check(const wavejit_attention_latent_arguments* arguments);
// The workspace of a call that brings one: large enough for `bytes`, and memory of nothing else that it names.
Result<void> check_workspace_of(const wavejit_attention_latent_arguments& call, const LatentProblem& problem,
                                std::uint64_t bytes);
Result<void> check_device_lengths(families::DeviceMemory& memory, const LatentProblem& problem,
                                  const wavejit_attention_latent_arguments& call);

}  // namespace wavejit::attention_latent
