// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled attention_forward kernel is: the words of a problem that change code, plus what the route chose.
//
// A spec is a value with a canonical text; that text (with target, lowering, generator and LLVM version) is the cache
// key:
//
//   attention_forward fp16 d128 causal lse pipeline=generic tile=128x64 o_store=permlane target=gfx950 lowering=llvm
//
// Sizes that change per request (batch, heads, lengths, strides, scale, pointers) are kernel arguments (arguments.h)
// and never part of a spec. No LLVM in this header: the runtime and the code generator share it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "families/kernel/kernel_spec.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/kernel/types.h"
#include "templates/attention_forward/kernel/head_dims.h"
#include "templates/attention_forward/kernel/pipeline.h"

namespace wavejit::attention_forward {

// The names that all families of attention share are used here without their namespace.
using namespace attention;
using families::Lowering;

// The sequences that a kernel takes, by their number of query rows: all sequences, or those with at most (few) or more
// than (many) a number of rows that is a kernel argument (row_limits.h).
enum class QueriesOf : std::uint8_t { all, few, many };

// The words of a problem that change code. A call's shape (call/shape.h) is made of the same words.
struct AskedWords {
  DataType dtype = DataType::fp16;
  int head_dim_qk = 128;
  int head_dim_v = 128;
  Mask mask = Mask::none;
  // A flag in device memory says for each sequence whether its rows have a diagonal. With Mask::causal only.
  bool causal_flags = false;
  // Q has the type of K and V in memory, e4m3, and weights are rounded to it. `dtype` is the type of O.
  bool narrow_queries = false;
  // Q is f32 in memory, and rounded to `dtype` once, where it is loaded: to nearest, ties to even.
  bool query_fp32 = false;
  // Q and K are 8-bit integers with scales (integer_arguments.h); their products are exact. V and O have the type
  // `dtype`.
  bool integers = false;
  bool half_scores = false;  // scores are rounded to fp16 after the bias, as rocMLIR does. With `integers` only
  CacheType cache = CacheType::as_queries;  // the type of K and V in memory
  // Each key of each kv head has a scale of its own (integer_arguments.h). With `cache`, each value has one, too
  // (token_scale_arguments.h). With `cache` or `integers` only; pages in pipeline=generic, and those of whole tiles in
  // pipeline=dualwave.
  bool token_scales = false;
  bool lse = false;
  // The dims of a row need not be contiguous: the arguments give the distance of a row and that of a dim
  // (strided_arguments.h). pipeline=generic only.
  bool trans_q = false;
  bool trans_k = false;
  bool trans_v = false;
  bool trans_o = false;
  // The type of O in memory, where it is not `dtype`: f32, each row before it would be rounded, or 8 bits, to which it is
  // scaled (output_scale_arguments.h).
  OutputType output = OutputType::as_products;
  // The modifiers of scores before the mask: rows of modifiers.h that change code.
  Modifiers modifiers = {};  // NOLINT(readability-redundant-member-init): for initializers
  bool bias_fp32 = false;    // the bias is f32, not of `dtype`. pipeline=generic only
  // K and V lie in pages of a KV cache, which a block table names (page_arguments.h). Page sizes and strides are
  // arguments.
  bool paged = false;
  // A page holds whole tiles of keys, so that a tile lies in one page: for pipelines that look up a whole tile. With
  // `paged` only.
  bool whole_tiles = false;
  // Pages of one key (a pool of tokens): the block table has an entry for each key. With `paged` only.
  bool single_keys = false;
  // 16 bytes of a page are 8 dims of one key of K, or 8 keys of one dim of V. An argument says which of its two orders
  // V has. pipeline=generic only, with `paged` only.
  bool vectorised = false;
  // Left padding: device memory gives the row, or the slot of its pages, at which key 0 of a sequence stands.
  bool first_keys = false;
  // Rows see the tiles of a walk, which attention_block_lists makes from a call's lists (block_lists/walks.h).
  bool block_lists = false;
  // The walks are made from a bool mask (kernel/walks/mask_lists): of a tile that a walk marks as masked, a row sees the keys
  // whose bit is set. Without `block_lists`, for few rows, all tiles are walked, also with split keys, and marks beside
  // the bits say which tiles no row sees. Not with a bias, because its arguments give the address of the bits.
  bool bool_mask = false;
  // The walks are made from the bias (kernel/walks/mask_lists): a tile that a walk marks as masked has the bias added to its
  // scores; in other tiles the bias is 0 and not read. With `block_lists` and a bias only.
  bool bias_by_tile = false;
  // Each query has a list of the keys that it sees, for all heads or for each kv head. `slots`: the list names slots of
  // the cache (page · keys of a page + key), else numbers of keys in the sequence. The diagonal is then an argument,
  // and a workgroup has heads of one query. pipeline=generic heads=packed only.
  bool listed = false;
  bool slots = false;
  // Which sequences of a call this kernel takes, short or long ones, where two kernels share a call.
  QueriesOf rows = QueriesOf::all;

  // The type of Q in products, and in memory.
  constexpr DataType query_type() const { return integers ? DataType::i8 : narrow_queries ? DataType::e4m3 : dtype; }
  constexpr DataType stored_query_type() const { return query_fp32 ? DataType::fp32 : query_type(); }
  constexpr DataType key_type() const { return integers || narrow_queries ? query_type() : type_in(cache, dtype); }
  constexpr DataType value_type() const { return integers ? dtype : key_type(); }
  constexpr DataType output_type() const { return type_in(output, dtype); }
  constexpr bool scales_output() const { return is_narrow(output_type()); }
  DataType bias_type() const { return bias_fp32 ? DataType::fp32 : dtype; }
  // Scores are modified: softmax then works on s · c + modifiers instead of raw scores (docs/canonical-arithmetic.md).
  bool modified() const { return modifiers.any(); }
  // Whether products and modifiers give scores as powers of two, which c does not multiply any more.
  bool scores_are_scaled() const { return modified() || integers; }
  // Whether a cache has scales of tokens. Its kernels multiply weights by them, too.
  bool cache_has_token_scales() const { return token_scales && !integers; }
  constexpr bool trans_any() const { return trans_q || trans_k || trans_v || trans_o; }
  // Whether kernels move rows as a whole, so that the dims of a row must be contiguous.
  constexpr bool moves_whole_rows() const {
    return narrow_queries || cache != CacheType::as_queries || paged || listed || block_lists || bool_mask;
  }
  constexpr bool has(Modifier modifier) const { return modifiers.has(modifier); }
  bool shares_call() const { return rows != QueriesOf::all; }
  constexpr KeyLayout key_layout() const {
    return {.paged = paged,
            .whole_tiles = whole_tiles,
            .single_keys = single_keys || (listed && !paged),
            .vectorised = vectorised,
            .first_keys = first_keys,
            .listed = listed,
            .listed_slots = slots};
  }
  // Whether a row is a sum of chunks of keys. With Q in 8 bits a row is one sum: its keys are never split, and merging
  // chunks would take a tenth of the time.
  constexpr bool has_chunks() const { return !narrow_queries; }
  static constexpr int endless_chunk_keys = 1 << 30;
  // The keys of a chunk: the sums of a row begin anew at each chunk.
  constexpr int keys_of_chunk() const {
    return !has_chunks() ? endless_chunk_keys : listed ? list_chunk_keys : chunk_keys;
  }
  bool operator==(const AskedWords&) const = default;
};

// What the route has chosen for the problem.
struct ChosenWords {
  // 0, or keys_of_chunk(): a workgroup walks a run of chunks and leaves the part of each chunk in the workspace
  // (attention_combine merges the parts).
  int split_keys = 0;
  // The parts of a tile of rows are merged by the last workgroup that leaves one (emit/merge_if_last.h); else by
  // attention_combine. With `split_keys` and `packed_heads` only.
  bool merged = false;
  // The query heads of a kv head are rows of one tile, position by position: row r is head r mod group of position
  // r / group. K and V are then read once a kv head. The group is an argument. pipeline=generic only.
  bool packed_heads = false;
  // A workgroup has two query tiles, tile n − 1 − y of n and then tile y, so that under a diagonal all workgroups have
  // the same number of keys. pipeline=dualwave with mask=causal only; shows in no result.
  bool paired_tiles = false;
  // If not 0, this many waves share a workgroup's rows and each chunk of its keys: scores by tiles, O by dims
  // (emit/shared_walk.h). pipeline=generic with tile_queries=32 only; shows in no result.
  int chunk_waves = 0;
  Pipeline pipeline = Pipeline::generic;
  int tile_queries = 128;  // query rows a workgroup owns
  int tile_keys = attention::tile_keys;
  OutputStore output_store = OutputStore::scalar;
  std::string target = {};  // NOLINT(readability-redundant-member-init): a row of the target table
  Lowering lowering = Lowering::llvm;
  // pipeline=dualwave only; neither shows in results. The text has them only when off: "stagger=off setprio=off".
  bool stagger = true;          // the second group of waves runs one cluster behind
  bool raised_priority = true;  // s_setprio around the clusters that compute most
  // A name in ladders.h; empty: the standard ladder, which the text leaves out. For developers; shows in no result.
  // NOLINTNEXTLINE(readability-redundant-member-init): with it, an initializer warns of no missing field
  std::string ladder = {};

  bool operator==(const ChosenWords&) const = default;
};

// {{.mask = Mask::causal}, {.pipeline = Pipeline::dualwave, .target = "gfx950"}}. The rows of words.h define its text.
struct ForwardKernel : AskedWords, ChosenWords {
  static constexpr std::string_view kernel = "attention_forward";
  static constexpr std::string_view family = "attention_forward";
  // Waves that multiply by V where waves share a chunk, and all waves of a workgroup. `rows`: the rows of one wave. The
  // matrix unit computes `rows` dims at a time.
  constexpr int waves_with_dims(int rows) const { return std::min(chunk_waves, head_dim_v / rows); }
  constexpr int waves(int rows) const { return chunk_waves != 0 ? chunk_waves : tile_queries / rows; }
  // Overlapped pipelines look up what a wave moves: a tile, or one granule where a page need not hold a whole tile.
  constexpr KeyLayout tile_layout() const {
    KeyLayout layout = key_layout();
    layout.wave_granules =
        pipeline != Pipeline::generic && paged && !whole_tiles && !vectorised && !layout.looks_up_each_key();
    return layout;
  }
  bool operator==(const ForwardKernel&) const = default;
};

// Dims of a lane that merges parts: rows of all tiles that are not padded are whole lanes.
inline constexpr int merged_dims_of_lane = 16;
static_assert(std::ranges::all_of(whole_head_dims,
                                  [](const HeadDims& dims) { return dims.v % merged_dims_of_lane == 0; }));
// Rows that waves which share a tile merge at once: in a decode step a kv head seldom has more rows.
inline constexpr int shared_merge_rows = 16;

// Canonical text: one line, words in a fixed order. parse_spec(to_text(spec)) == spec.
std::string to_text(const ForwardKernel& spec);
// The error names the word, its position and what is accepted. Words may come in any order; no word may be missing or
// come twice.
std::expected<ForwardKernel, std::string> parse_spec(std::string_view text);

// Why there is no such kernel, in one sentence; nothing: there is one (parameters.h says which kernels there are).
std::optional<std::string> refusal_of(const ForwardKernel& spec);
// Bytes of the argument struct of a launch (arguments.h).
std::size_t argument_bytes(const ForwardKernel& spec);

}  // namespace wavejit::attention_forward
