// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled attention_forward kernel is: the words of a problem that change code, plus what the route chose.
//
// A spec is a value with a canonical text; that text (with target, lowering, generator and LLVM version) is the cache
// key:
//
//   attention_forward fp16 d128 causal lse pipeline=generic tile=128x64 o_store=permlane target=gfx950 lowering=llvm
//
// Sizes that change per request (batch, heads, lengths, strides, scale, pointers) are kernel arguments (arguments.h)
// and never stand here. No LLVM in this header: the runtime and the code generator share it.
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

// What all attention shares is called here as there.
using namespace attention;
using families::Lowering;

// The sequences that a kernel is for, by their query rows: all, or those up to and beyond a number that is an argument
// (row_limits.h).
enum class QueriesOf : std::uint8_t { all, few, many };

// What a problem asks for: its words that change code. A call's shape (call/shape.h) is made of the same.
struct AskedWords {
  DataType dtype = DataType::fp16;
  int head_dim_qk = 128;
  int head_dim_v = 128;
  Mask mask = Mask::none;
  // Device memory says of each sequence whether its rows have a diagonal at all. With Mask::causal only.
  bool causal_flags = false;
  // Q, too, is of the type of K and V in memory, e4m3: weights are rounded to it. `dtype` is that of O.
  bool narrow_queries = false;
  // Q is f32 in memory, and rounded to `dtype` once, where it is loaded: to nearest, ties to even.
  bool query_fp32 = false;
  // Q and K are integers of 8 bits, whose products are exact, with scales (integer_arguments.h). V and O are of
  // `dtype`.
  bool integers = false;
  bool half_scores = false;  // scores are rounded to fp16 behind the bias, as rocMLIR does. With `integers` only
  CacheType cache = CacheType::as_queries;  // what memory holds of K and V
  // Each key of each kv head has a scale of its own (integer_arguments.h), and beside `cache` so has its value
  // (token_scale_arguments.h). With `cache` or `integers` only. In no pipeline=dualwave; pages in pipeline=generic
  // only.
  bool token_scales = false;
  bool lse = false;
  // Elements of the tensor may stand at any distances, of which arguments have two (strided_arguments.h): the dims of a
  // row need not stand side by side. pipeline=generic only.
  bool trans_q = false;
  bool trans_k = false;
  bool trans_v = false;
  bool trans_o = false;
  bool output_fp32 = false;  // O is f32, each row as it was before rounding to `dtype`
  // What scores pass through before the mask: rows of modifiers.h that change code.
  Modifiers modifiers = {};  // NOLINT(readability-redundant-member-init): for initializers
  bool bias_fp32 = false;    // the bias is f32, not of `dtype`. pipeline=generic only
  // Keys and values stand in pages of a cache, which a block table names (page_arguments.h). Page sizes and strides are
  // arguments.
  bool paged = false;
  // Pages are whole tiles of keys, so that a tile stands in one page: pipelines that look it up as a whole. With
  // `paged` only.
  bool whole_tiles = false;
  // Pages of one key (a pool of tokens): the table has an entry a key. With `paged` only.
  bool single_keys = false;
  // 16 bytes of a page are 8 dims of one key of K, 8 keys of one dim of V; which of V's two orders is an argument.
  // pipeline=generic only, with `paged` only.
  bool vectorised = false;
  // Left padding: key 0 of a sequence stands at a row, or at a slot of its pages, that device memory says.
  bool first_keys = false;
  // Rows see the tiles of a walk, which attention_block_lists has made of a call's lists (block_lists/walks.h).
  bool block_lists = false;
  // Those walks are made of a bool mask (kernel/mask_lists): of a tile that they mark as masked a row sees the keys
  // whose bit is set. Without `block_lists`, of few rows: all tiles are walked, in runs, too, and marks beside the bits
  // say which nobody sees. No bias, whose arguments say where the bits stand.
  bool bool_mask = false;
  // Those walks are made of the bias (kernel/mask_lists): of a tile that they mark as masked scores have it added, of
  // another it is 0 and not read. With `block_lists` and a bias only.
  bool bias_by_tile = false;
  // Each query has a list of the keys that it sees, for all heads or for each kv head, by their number in the sequence
  // or by their slot in the cache (page · keys of a page + key). The diagonal is then an argument, and a workgroup has
  // heads of one query. pipeline=generic heads=packed only.
  bool listed = false;
  bool slots = false;
  // Which sequences of a call, short or long, this kernel takes: two kernels share it.
  QueriesOf rows = QueriesOf::all;

  // The type of Q in products, and in memory.
  constexpr DataType query_type() const { return integers ? DataType::i8 : narrow_queries ? DataType::e4m3 : dtype; }
  constexpr DataType stored_query_type() const { return query_fp32 ? DataType::fp32 : query_type(); }
  constexpr DataType key_type() const { return integers || narrow_queries ? query_type() : type_in(cache, dtype); }
  constexpr DataType value_type() const { return integers ? dtype : key_type(); }
  DataType output_type() const { return output_fp32 ? DataType::fp32 : dtype; }
  DataType bias_type() const { return bias_fp32 ? DataType::fp32 : dtype; }
  // Scores are modified: softmax then works on s · c + modifiers instead of raw scores (docs/canonical-arithmetic.md).
  bool modified() const { return modifiers.any(); }
  // What comes out of products and modifiers are powers of two, not numbers that c still is to be multiplied with.
  bool scores_are_scaled() const { return modified() || integers; }
  // Whether a cache has scales of tokens. Its kernels multiply weights, too.
  bool cache_has_token_scales() const { return token_scales && !integers; }
  constexpr bool trans_any() const { return trans_q || trans_k || trans_v || trans_o; }
  // Whether rows are moved whole, so that their dims stand side by side.
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
  // Rows are sums of chunks of keys. Of bytes a row is one sum: nobody splits its keys, and merging chunks would take a
  // tenth of the time.
  constexpr bool has_chunks() const { return !narrow_queries; }
  static constexpr int endless_chunk_keys = 1 << 30;
  // Sums begin anew at each.
  constexpr int keys_of_chunk() const {
    return !has_chunks() ? endless_chunk_keys : listed ? list_chunk_keys : chunk_keys;
  }
  bool operator==(const AskedWords&) const = default;
};

// What the route has chosen for it.
struct ChosenWords {
  // 0, or keys_of_chunk(): a workgroup walks a run of the chunks and leaves a part of each in the workspace
  // (attention_combine merges them).
  int split_keys = 0;
  // The last workgroup of a tile of rows to leave its parts merges them (emit/merge_if_last.h); else attention_combine
  // does. With `split_keys` and `packed_heads` only.
  bool merged = false;
  // The query heads of a kv head are rows of one tile, position by position: row r is head r mod group of position
  // r / group. K and V are then read once a kv head. The group is an argument. pipeline=generic only.
  bool packed_heads = false;
  // A workgroup owns two query tiles, tile n − 1 − y of n and then tile y, so that under a diagonal all workgroups have
  // as many keys. pipeline=dualwave with mask=causal only; shows in no result.
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
  // pipeline=dualwave only; neither shows in results. Written only when off: "stagger=off setprio=off".
  bool stagger = true;          // the second group of waves runs one cluster behind
  bool raised_priority = true;  // s_setprio around the clusters that compute most
  // A name in ladders.h, empty for the standard one, which has no word. Shows in no result either: for developers.
  // NOLINTNEXTLINE(readability-redundant-member-init): with it, an initializer warns of no missing field
  std::string ladder = {};

  bool operator==(const ChosenWords&) const = default;
};

// {{.mask = Mask::causal}, {.pipeline = Pipeline::dualwave, .target = "gfx950"}}. The rows of words.h say how it is
// told.
struct ForwardKernel : AskedWords, ChosenWords {
  static constexpr std::string_view kernel = "attention_forward";
  static constexpr std::string_view family = "attention_forward";
  // Waves that multiply by V where they share a chunk, and all waves of a workgroup; `rows`: of one wave. The matrix
  // unit makes `rows` dims at a time.
  constexpr int waves_with_dims(int rows) const { return std::min(chunk_waves, head_dim_v / rows); }
  constexpr int waves(int rows) const { return chunk_waves != 0 ? chunk_waves : tile_queries / rows; }
  // Overlapped pipelines look up what a wave moves: a tile, or a granule of pages that need not hold one.
  constexpr KeyLayout tile_layout() const {
    KeyLayout layout = key_layout();
    layout.wave_granules =
        pipeline != Pipeline::generic && paged && !whole_tiles && !vectorised && !layout.looks_up_each_key();
    return layout;
  }
  bool operator==(const ForwardKernel&) const = default;
};

// Whether there is a kernel of such words that merges its parts: dims of a row are those of whole lanes. Pages beside a
// bias or slopes take all scalar registers that there are.
inline constexpr int merged_dims_of_lane = 16;
// Rows that waves merge at once which share their tile: a kv head has no more of a decode step, most often.
inline constexpr int shared_merge_rows = 16;
constexpr bool merges_in_one_launch(const AskedWords& words) {
  if (is_padded({words.head_dim_qk, words.head_dim_v})) return false;
  const bool crowded = words.paged && (words.has(Modifier::bias) || words.has(Modifier::alibi) ||
                                       (words.first_keys && words.mask == Mask::window));
  return words.head_dim_v % merged_dims_of_lane == 0 && words.cache == CacheType::as_queries && !words.narrow_queries &&
         !words.integers && !words.output_fp32 && !words.trans_any() && !words.listed && !words.block_lists &&
         !words.bool_mask && !words.shares_call() && !crowded;
}
// Whether such a kernel exists in tiles of `tile_queries` rows. Where two waves have a tile, local chunks in pages of
// more than 64 dims take all scalar registers.
constexpr bool merges_in_tiles_of(const AskedWords& words, int tile_queries) {
  constexpr int rows_of_two_waves = 64;
  const bool crowded =
      words.paged && words.mask == Mask::chunked && words.head_dim_qk > 64 && tile_queries == rows_of_two_waves;
  return merges_in_one_launch(words) && !crowded;
}

// Canonical text: one line, words in a fixed order. parse_spec(to_text(spec)) == spec.
std::string to_text(const ForwardKernel& spec);
// The error names the word, its position and what is accepted. Words may come in any order; none may be missing or
// twice.
std::expected<ForwardKernel, std::string> parse_spec(std::string_view text);

// Why there is no such kernel, in one sentence, or nothing (parameters.h says what there is).
std::optional<std::string> refusal_of(const ForwardKernel& spec);
// Bytes of the argument struct that a launch hands over (arguments.h).
std::size_t argument_bytes(const ForwardKernel& spec);

}  // namespace wavejit::attention_forward
