// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one workgroup works on: its query rows, its (batch, head) slices as bounded buffers, its key tiles.
#pragma once

#include <optional>

#include "templates/attention/emit/query.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_forward/kernel/paged_arguments.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// The walk of a unit of block lists; uniform.
struct WalkPlace {
  language::Value* entries;  // address
  language::Value* count;
  language::Value* several_chunks;
  language::Value* empty;  // no row sees a key, so the one tile that is walked is no tile of the sequence
  language::Value* block;  // of the unit: its rows are those of the wave
};

// The wave's share of rows that several waves have together; all uniform.
struct WaveShare {
  language::Value* first_dim = nullptr;  // of O; null: no other wave has these rows, and the wave has all dims
  language::Value* has_dims = nullptr;   // whether the wave has dims; null: every wave has
  language::Value* leads = nullptr;      // whether it writes the values of whole rows, m, l and LSE
};
// How many blocks of O's dims a wave has, and how many waves have any.
int output_blocks_of_wave(const ForwardKernel& spec, int rows_of_block);
int waves_with_outputs(const ForwardKernel& spec, int rows_of_block);

struct Workgroup : QueryTile {
  Slice q;
  Slice k;
  Slice v;
  Slice o;

  language::Value* first_slot = nullptr;  // of keys in pages: where key 0 stands, 0 without first_keys
  language::Value* rescale_threshold = nullptr;
  // The key tiles that some row of the workgroup sees, from the first to the last, at least one: first_tile ≤ t <
  // tiles.
  language::Value* first_tile = nullptr;
  language::Value* tiles = nullptr;
  // For block lists: the walk, in which the two values above are places.
  std::optional<WalkPlace> walk = std::nullopt;
  // For listed keys, else null (KeyTensors).
  language::Value* list = nullptr;
  language::Value* named_keys = nullptr;
  // For a cache of 8 bits, else null: the scale of values, uniform.
  language::Value* value_scale = nullptr;
  language::Value* kv_head = nullptr;
  language::Value* key_length = nullptr;  // of the sequence, up to the last key that some row sees
  // The sequence's first key that some row sees, where there is a window; null: key 0.
  language::Value* first_seen = nullptr;
  WaveShare share = {};
  // The first row of the tile, and the number of rows of all tiles. With packed heads both count the rows of all heads.
  language::Value* first_of_tile = nullptr;
  language::Value* rows = nullptr;
  // For parts that the last workgroup to arrive merges (emit/merge_if_last.h), else null: the tiles that rows see,
  // whichever workgroup walks them, and the tiles of a run. Scalar registers are short during a walk, so lanes hold
  // these three values, and then the two row numbers above, too.
  language::Value* first_tile_of_all = nullptr;
  language::Value* last_tile_of_all = nullptr;
  language::Value* tiles_of_run = nullptr;

  // The tensors from which tiles of K and V are fetched.
  KeyTensors keys() const {
    return {.k = k,
            .v = v,
            .batch = batch,
            .first_slot = first_slot,
            .last_key = last_key,
            .page_arguments = offsetof(PagedArguments, pages),
            .list = list,
            .named_keys = named_keys,
            .first_seen = first_seen};
  }
};

// The type of Q in memory.
inline attention::QueryNumbers query_numbers(const ForwardKernel& spec) {
  return spec.query_fp32 ? attention::QueryNumbers::floats : attention::QueryNumbers::operands;
}

// V and O of waves that share a chunk. The caller has requested K from memory before: no instruction that V and O need
// is placed before this call.
void make_later_slices(language::Kernel& kernel, const ForwardKernel& spec, Workgroup& workgroup);
// Makes O's slice where rows end, for waves that have no scalar registers for it during the walk; does nothing for
// others, whose O was made before.
void make_last_outputs(language::Kernel& kernel, const ForwardKernel& spec, Workgroup& workgroup);

// The values of a workgroup that do not depend on its query tile.
struct WorkgroupPlace {
  language::Value* query_head;
  language::Value* kv_head;
  language::Value* batch;
  language::Value* split;  // null: keys are whole
  language::Value* group;  // of packed heads, else null
  Sequence sequence;
  language::Value* rows;  // of all query tiles together
  language::Value* last_key;
  language::Value* query_tile;   // its own; with paired tiles the longer one
  language::Value* second_tile;  // with paired tiles, else null; equal to query_tile if the tile has no partner
  // For listed keys, else null: the query's first row, its list, and how many keys the list may name.
  language::Value* first_row = nullptr;
  language::Value* list = nullptr;
  language::Value* named_keys = nullptr;
};
// Ends workgroups beyond the rows of their sequence.
WorkgroupPlace find_place(language::Kernel& kernel, const ForwardKernel& spec);
// With split keys, ends workgroups that have no keys.
Workgroup begin_tile(language::Kernel& kernel, const ForwardKernel& spec, const WorkgroupPlace& place,
                     language::Value* query_tile);
// A row of the tile, given by its number in the tile.
struct RowOfTile {
  language::Value* position;
  language::Value* head;    // of packed heads, else null: counted from the group's first
  language::Value* exists;  // per lane
};
RowOfTile row_of_tile(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                      language::Value* row);
// Per lane: the bytes from the tile's first row in Q to the begin of row `row`; far outside if there is no such row.
language::Value* begin_of_query_row(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                                    language::Value* row);
// find_place and begin_tile in one.
Workgroup begin_workgroup(language::Kernel& kernel, const ForwardKernel& spec);
// Loads arguments that no instruction needs before the first tile is walked, so that they arrive together with the
// others (loads_first.h).
void ask_for_walk(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup);

}  // namespace wavejit::attention_forward
