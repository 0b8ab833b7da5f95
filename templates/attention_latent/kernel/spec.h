// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled kernel of this family is, and its text (the cache key):
//
//   attention_latent bf16 d576/512 mask=causal rows=32 pages=tiles parts target=gfx950 lowering=llvm
//   attention_latent bf16 cache=e4m3 row_scales=128 d576/512 mask=none rows=32 target=gfx950 lowering=llvm
//   attention_latent_combine bf16 d512 target=gfx950 lowering=llvm
//
// Heads, lengths, strides and addresses are arguments of a launch; LSE and sinks are arguments that may be null. No
// LLVM in this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "families/kernel/kernel_spec.h"
#include "families/kernel/names.h"
#include "families/kernel/spec_words.h"
#include "targets/targets.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/types.h"
#include "templates/attention/kernel/words.h"

namespace wavejit::attention_latent {

using families::Lowering;
using families::to_text;

using attention::bytes_of;
using attention::CacheType;
using attention::DataType;
using attention::HeadDims;
using attention::Modifier;
using attention::Modifiers;

inline constexpr std::string_view family_name = "attention_latent";

// Columns of K. V is its first columns.
enum class Dims : std::uint8_t { d576, d512, d320 };
inline constexpr families::Names<Dims, 3> dims_names = {
    {{Dims::d576, "576/512"}, {Dims::d512, "512"}, {Dims::d320, "320/256"}}};
constexpr HeadDims head_dims(Dims dims) {
  if (dims == Dims::d576) return {.qk = 576, .v = 512};
  return dims == Dims::d512 ? HeadDims{.qk = 512, .v = 512} : HeadDims{.qk = 320, .v = 256};
}

enum class Mask : std::uint8_t { none, causal };
inline constexpr families::Names<Mask, 2> masks = {{{Mask::none, "none"}, {Mask::causal, "causal"}}};

// dense: rows of a tensor. granules: pages of 16 n keys. tiles: pages of 64 n keys. keys: pages of one key.
enum class Pages : std::uint8_t { dense, granules, tiles, keys };
inline constexpr families::Names<Pages, 4> pages_names = {
    {{Pages::dense, "none"}, {Pages::granules, "granules"}, {Pages::tiles, "tiles"}, {Pages::keys, "keys"}}};

// Formats of a cache of 8 bits whose rows contain scales. of_128: V's columns in e4m3, then one f32 scale for each 128
// of them, then the other columns, the rope, in bf16: 656 bytes for 512 + 64 columns, as FlashMLA has them for DeepSeek
// V3.2. Every kernel takes a key as round(byte · scale) in the queries' type.
// of_64: 512 columns, all of them V's, of which 448 are in e4m3 and 64 in bf16. Behind all rows of a page (of a
// sequence) each row has 8 bytes: powers of two in E8M0, one for each 64 columns in e4m3, and one unused byte. A row
// takes 584 bytes, as FlashMLA has them for DeepSeek V4.
enum class RowScales : std::uint8_t { none, of_128, of_64 };
inline constexpr families::Names<RowScales, 2> row_scales_names = {
    {{RowScales::of_128, "128"}, {RowScales::of_64, "64"}}};
constexpr int scaled_columns(RowScales scales) { return scales == RowScales::of_128 ? 128 : 64; }
constexpr Dims dims_of(RowScales scales) { return scales == RowScales::of_64 ? Dims::d512 : Dims::d576; }
// The columns in bf16 of a row in the format of_64.
inline constexpr int wide_columns = 64;
inline constexpr int exponent_row_bytes = 8;

// Rows of a workgroup. A row is one head of one query.
enum class Rows : std::uint8_t { r32, r64, r128 };
inline constexpr families::Names<Rows, 3> rows_names = {{{Rows::r32, "32"}, {Rows::r64, "64"}, {Rows::r128, "128"}}};
constexpr int count_of(Rows rows) { return rows == Rows::r32 ? 32 : rows == Rows::r64 ? 64 : 128; }

// What a problem asks for.
struct AskedWords {
  DataType dtype = DataType::bf16;
  CacheType cache = CacheType::as_queries;  // the type of keys in memory
  RowScales row_scales = RowScales::none;
  Dims dims = Dims::d576;
  Mask mask = Mask::none;
  Modifiers modifiers;  // kernels of this family have softcap only
  Rows rows = Rows::r32;
  Pages pages = Pages::dense;
  // Each query has a list of the keys that it sees, by their number in the sequence, or by their slot in the cache
  // (page · keys of a page + key). The diagonal is then an argument, and a workgroup has rows of one query.
  bool listed = false;
  bool slots = false;
  bool parts = false;   // writes the part of each chunk to a workspace
  bool merged = false;  // the last workgroup to arrive merges the parts; else the combine kernel does
  bool operator==(const AskedWords&) const = default;

  bool has(Modifier one) const { return modifiers.has(one); }
  int dims_k() const { return head_dims(dims).qk; }
  int dims_v() const { return head_dims(dims).v; }
  int rope_dims() const { return dims_k() - dims_v(); }
  bool widens() const { return cache != CacheType::as_queries; }
  DataType key_type() const { return attention::type_in(cache, dtype); }
  bool has_row_scales() const { return row_scales != RowScales::none; }
  bool has_exponents() const { return row_scales == RowScales::of_64; }
  // The columns of V that memory holds in 16 bits, where it holds the others in 8.
  int columns_kept() const { return has_exponents() ? wide_columns : 0; }
  DataType rope_type() const { return has_row_scales() ? dtype : key_type(); }
  // Bytes of a row in memory before the rope, where keys and rope are one tensor; and where the scales begin.
  int bytes_before_rope() const {
    const bool of_floats = row_scales == RowScales::of_128;
    return scales_at() + (of_floats ? dims_v() / scaled_columns(row_scales) * static_cast<int>(sizeof(float)) : 0);
  }
  // For rows in the format of_64 this is the size of the whole row.
  int scales_at() const {
    return ((dims_v() - columns_kept()) * bytes_of(key_type())) + (columns_kept() * bytes_of(dtype));
  }
  attention::KeyLayout layout() const {
    return {.paged = pages != Pages::dense,
            .whole_tiles = pages == Pages::tiles,
            .single_keys = pages == Pages::keys || (listed && pages == Pages::dense),
            .listed = listed,
            .listed_slots = slots};
  }
  int chunk_keys() const { return listed ? attention::list_chunk_keys : attention::chunk_keys; }
};

// The most rows of a workgroup. With 128 rows a wave has all columns of O. Registers have room for them only if keys
// never pass through registers and no modifier takes registers beside the scores.
Rows most_rows(const AskedWords& words, const targets::Target& target);

struct WalkKernel : AskedWords {
  static constexpr std::string_view kernel = "attention_latent";
  static constexpr std::string_view family = family_name;
  std::string target;
  Lowering lowering = Lowering::llvm;
  bool operator==(const WalkKernel&) const = default;
};

// Merges the parts that workgroups left. It does not depend on their rows, mask, pages or modifiers.
struct CombineKernel {
  static constexpr std::string_view kernel = "attention_latent_combine";
  static constexpr std::string_view family = family_name;
  DataType dtype = DataType::bf16;  // of O
  int head_dim = 512;
  bool few = false;     // the parts of walks with 32 rows a workgroup: more waves, each with fewer dims of a row
  bool listed = false;  // the parts of lists
  bool scaled = false;  // the parts of a cache of 8 bits, which has a scale
  std::string target;
  Lowering lowering = Lowering::llvm;
  bool operator==(const CombineKernel&) const = default;
};

std::string to_text(const WalkKernel& spec);
std::string to_text(const CombineKernel& spec);
std::expected<WalkKernel, std::string> parse_walk_kernel(std::string_view text);
std::expected<CombineKernel, std::string> parse_combine_kernel(std::string_view text);
// "attention_latent_bf16_d576_512_causal_rows32_tiles_parts_gfx950"
std::string kernel_name(const WalkKernel& spec);
std::string kernel_name(const CombineKernel& spec);
std::optional<std::string> refusal_of(const WalkKernel& spec);
std::optional<std::string> refusal_of(const CombineKernel& spec);
std::size_t argument_bytes(const WalkKernel& spec);
std::size_t argument_bytes(const CombineKernel& spec);

// Four waves. Waves that have the same tile of 32 rows multiply the same scores, and each has a share of O's columns.
inline constexpr int waves = 4;
inline constexpr int wave_rows = 32;
inline constexpr int threads = waves * 64;
constexpr int waves_of_rows(const AskedWords& words) { return waves / (count_of(words.rows) / wave_rows); }
constexpr int dims_of_wave(const AskedWords& words) { return words.dims_v() / waves_of_rows(words); }
inline constexpr int combine_threads = 64;

// A record is the part that one chunk leaves for a tile of up to 32 rows, in f32. Its order is that of the lanes, so
// that neighbouring lanes write and read neighbouring 16 bytes:
//
//   O [head dim / 4][row][4]   (m, l) [row]   nothing [row][2]
//
// A record takes record_bytes() for each row. Records lie [tile][chunk]; the tiles of a sequence (of a query, if it has
// a list) follow each other, and sequences lie as in q.
constexpr int record_bytes(int head_dim) { return (head_dim + 4) * 4; }
inline constexpr int record_load_bytes = 16;
// Loads of a row's O that a lane has in flight when a walk merges its parts. The more there are, the fewer turns a wave
// takes, each of which waits for memory anew. All registers are free by then.
constexpr int merge_loads(const AskedWords& walk) { return walk.rows == Rows::r32 ? 8 : 16; }
// The most turns that a wave of the workgroup takes to merge a tile of `rows` rows.
constexpr int merge_turns(const AskedWords& walk, int rows) {
  const int parts = walk.dims_v() * 4 / (record_load_bytes * merge_loads(walk));
  const int of_turn = combine_threads / rows * waves_of_rows(walk);
  return (parts + of_turn - 1) / of_turn;
}
// The same for a merge in a launch of its own; and how many waves share a tile of `rows` rows.
constexpr int combine_loads(const CombineKernel& spec) { return spec.few ? 2 : 4; }
constexpr int combine_waves(const CombineKernel& spec, int rows) {
  const int of_wave = combine_threads / rows * combine_loads(spec);
  return ((spec.head_dim * 4 / record_load_bytes) + of_wave - 1) / of_wave;
}

// Whether keys lie swizzled in LDS. Keys that are multiplied by the scales of their rows pass through registers, on
// every target, and LDS holds the products.
bool stands_swizzled(const AskedWords& words, const targets::Target& target);

// The order of a wave's share of dims in O's blocks of 32: one block after the other, or in pairs of blocks: of 64 dims
// one block has the even ones and the other the odd ones, because one dword of LDS is two dims of a key
// (emit/swizzled_ring.h).
enum class ColumnOrder : std::uint8_t { in_blocks, in_pairs };
ColumnOrder column_order(const AskedWords& words, const targets::Target& target);

// LDS of a walk (attention/kernel/lds_layout.h). Lines: two tiles of keys, or four if keys have 8 bits; each tile has
// its V columns and then the others; after the tiles come scores that waves exchange. Swizzled: the V columns of one
// tile.
struct KeyRingPlan {
  int buffers = 1;
  int line_bytes = 0;
  int latent_bytes = 0;  // of a tile
  int rope_bytes = 0;
  int wave_score_bytes = 0;    // 0: each wave computes all scores of its rows
  int query_latent_bytes = 0;  // V's columns of the query rows that pass through LDS at once
  constexpr int image_bytes() const { return latent_bytes + rope_bytes; }
  constexpr int latent_offset(int buffer) const { return buffer * image_bytes(); }
  // The query lies in the place of the last tiles.
  constexpr int query_offset() const { return latent_offset(buffers) / 2; }
  constexpr int rope_offset(int buffer) const { return latent_offset(buffer) + latent_bytes; }
  constexpr int scores_offset() const { return latent_offset(buffers); }
  constexpr int total_bytes() const { return scores_offset() + (waves * wave_score_bytes); }
};
KeyRingPlan key_ring_plan(const AskedWords& words, const targets::Target& target);

}  // namespace wavejit::attention_latent
