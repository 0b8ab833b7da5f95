// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one workgroup works on: a tile of rows of one sequence, the tensors as bounded buffers, the tiles of keys.
#pragma once

#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_latent/kernel/arguments.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

// A row is one head of one query: row = query · heads + head. `row`, `first_row` and their like are queries.
struct Workgroup : attention::QueryTile {
  attention::Slice q;
  attention::Slice q_rope;
  attention::Slice k;
  attention::Slice k_rope;
  attention::Slice o;
  language::Value* rescale_threshold = nullptr;
  // Tiles of keys from the first to the last one that some row of the workgroup sees, of its run: at least one.
  language::Value* first_tile = nullptr;
  language::Value* tiles = nullptr;
  // Rows of the sequence: how many, the workgroup's and the wave's first, and the lane's own.
  language::Value* rows = nullptr;
  language::Value* first_of_tile = nullptr;
  language::Value* first_of_wave = nullptr;
  language::Value* row_of_lane = nullptr;
  // Uniform: which of the waves that share 32 rows this is.
  language::Value* share = nullptr;
  // For listed keys, else null: where the query's list begins (i64), and how many keys it may name, uniform.
  language::Value* list = nullptr;
  language::Value* named_keys = nullptr;
  // For parts that are merged by the last to arrive (emit/merge_if_last.h), held by lanes: the last tile that some row
  // of the workgroup sees, of any run, and which counters of arrivals are its own.
  language::Value* last_of_runs = nullptr;
  language::Value* arrivals = nullptr;

  // `part`: what tiles of it are made of.
  attention::KeyTensors keys(const attention::Slice& part) const {
    return {.k = part,
            .v = part,
            .batch = batch,
            .first_slot = nullptr,
            .last_key = last_key,
            .page_arguments = offsetof(Arguments, pages),
            .list = list,
            .named_keys = named_keys};
  }
};

// The same with everything that lanes have of their own made anew: none of it lives through the loop before.
Workgroup lanes_made_anew(language::Kernel& kernel, const Workgroup& workgroup);

// The scale of a cache of 8 bits, of a sequence: f32, uniform. `at`: where the arguments have a CacheScale.
language::Value* cache_scale(language::Kernel& kernel, std::size_t at, language::Value* batch);

// Workgroups beyond the sequences, their rows or their keys end in here.
Workgroup begin_workgroup(language::Kernel& kernel, const WalkKernel& spec);

}  // namespace wavejit::attention_latent
