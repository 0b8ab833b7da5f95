// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tensors of an attention hold, which keys its rows see, and how its keys lie in memory: the words that
// kernels of every family share. No LLVM.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "families/kernel/names.h"
#include "targets/targets.h"

namespace wavejit::attention {

// A name says a format to the bit: e4m3 and e5m2 are those of the Open Compute Project, _fnuz those without infinities
// and −0, whose one NaN is 0x80. A byte of theirs is half of what it is in the other.
enum class DataType : std::uint8_t { bf16, fp16, fp32, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, i8 };
inline constexpr families::Names<DataType, 8> data_types = {{{DataType::bf16, "bf16"},
                                                             {DataType::fp16, "fp16"},
                                                             {DataType::fp32, "fp32"},
                                                             {DataType::e4m3, "e4m3"},
                                                             {DataType::e5m2, "e5m2"},
                                                             {DataType::e4m3_fnuz, "e4m3_fnuz"},
                                                             {DataType::e5m2_fnuz, "e5m2_fnuz"},
                                                             {DataType::i8, "i8"}}};
// Types of 16 bits and more.
inline constexpr families::Names<DataType, 3> wide_types = {
    {{DataType::bf16, "bf16"}, {DataType::fp16, "fp16"}, {DataType::fp32, "fp32"}}};
// Those that matrix instructions multiply.
inline constexpr families::Names<DataType, 2> operand_types = {{{DataType::bf16, "bf16"}, {DataType::fp16, "fp16"}}};
inline std::string_view to_text(DataType dtype) { return families::name_in(data_types, dtype); }
constexpr int bytes_of(DataType dtype) {
  return dtype == DataType::fp32 ? 4 : dtype == DataType::bf16 || dtype == DataType::fp16 ? 2 : 1;
}
constexpr bool is_narrow(DataType dtype) { return bytes_of(dtype) == 1; }
// Which encodings of 8 bits these are: one target's instructions read those of one kind.
constexpr targets::Fp8 encoding_of(DataType dtype) {
  return dtype == DataType::e4m3 || dtype == DataType::e5m2             ? targets::Fp8::ocp
         : dtype == DataType::e4m3_fnuz || dtype == DataType::e5m2_fnuz ? targets::Fp8::fnuz
                                                                        : targets::Fp8::none;
}
// Integers are integers everywhere.
constexpr bool reads(const targets::Target& target, DataType dtype) {
  return dtype == DataType::i8 || encoding_of(dtype) == target.fp8;
}

// What memory holds of K and V: elements of the queries' type, or 8 bits, which are widened to it as they are read.
enum class CacheType : std::uint8_t { as_queries, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, i8 };
inline constexpr families::Names<CacheType, 5> cache_types = {{{CacheType::e4m3, "e4m3"},
                                                               {CacheType::e5m2, "e5m2"},
                                                               {CacheType::e4m3_fnuz, "e4m3_fnuz"},
                                                               {CacheType::e5m2_fnuz, "e5m2_fnuz"},
                                                               {CacheType::i8, "i8"}}};
constexpr DataType type_in(CacheType cache, DataType queries) {
  switch (cache) {
    case CacheType::e4m3:
      return DataType::e4m3;
    case CacheType::e5m2:
      return DataType::e5m2;
    case CacheType::e4m3_fnuz:
      return DataType::e4m3_fnuz;
    case CacheType::e5m2_fnuz:
      return DataType::e5m2_fnuz;
    case CacheType::i8:
      return DataType::i8;
    case CacheType::as_queries:
      break;
  }
  return queries;
}
// The other way round; wide types are the queries'.
constexpr CacheType cache_type_of(DataType type) {
  switch (type) {
    case DataType::e4m3:
      return CacheType::e4m3;
    case DataType::e5m2:
      return CacheType::e5m2;
    case DataType::e4m3_fnuz:
      return CacheType::e4m3_fnuz;
    case DataType::e5m2_fnuz:
      return CacheType::e5m2_fnuz;
    case DataType::i8:
      return CacheType::i8;
    default:
      return CacheType::as_queries;
  }
}

// What memory gets of O: elements of the type of products, f32, or 8 bits, to which it is scaled (output_scale.h).
enum class OutputType : std::uint8_t { as_products, fp32, e4m3, e4m3_fnuz, i8 };
inline constexpr families::Names<OutputType, 4> output_types = {{{OutputType::fp32, "fp32"},
                                                                 {OutputType::e4m3, "e4m3"},
                                                                 {OutputType::e4m3_fnuz, "e4m3_fnuz"},
                                                                 {OutputType::i8, "i8"}}};
// All that O may be of.
inline constexpr families::Names<DataType, 6> written_types = {{{DataType::bf16, "bf16"},
                                                                {DataType::fp16, "fp16"},
                                                                {DataType::fp32, "fp32"},
                                                                {DataType::e4m3, "e4m3"},
                                                                {DataType::e4m3_fnuz, "e4m3_fnuz"},
                                                                {DataType::i8, "i8"}}};
constexpr DataType type_in(OutputType output, DataType products) {
  switch (output) {
    case OutputType::fp32:
      return DataType::fp32;
    case OutputType::e4m3:
      return DataType::e4m3;
    case OutputType::e4m3_fnuz:
      return DataType::e4m3_fnuz;
    case OutputType::i8:
      return DataType::i8;
    case OutputType::as_products:
      break;
  }
  return products;
}
// The other way round; types of 16 bits are those of products.
constexpr OutputType output_type_of(DataType type) {
  switch (type) {
    case DataType::fp32:
      return OutputType::fp32;
    case DataType::e4m3:
      return OutputType::e4m3;
    case DataType::e4m3_fnuz:
      return OutputType::e4m3_fnuz;
    case DataType::i8:
      return OutputType::i8;
    default:
      return OutputType::as_products;
  }
}

// The head dims of q and k, of v and o.
struct HeadDims {
  int qk = 0;
  int v = 0;
  bool operator==(const HeadDims&) const = default;
};
// How many blocks of `dims_of_block` dims hold all `dims`. Tiles pad the last block, memory does not.
constexpr int blocks_of_dims(int dims, int dims_of_block) { return (dims + dims_of_block - 1) / dims_of_block; }
// "128", "192/128"
inline std::string to_text(const HeadDims& dims) {
  return std::to_string(dims.qk) + (dims.v == dims.qk ? "" : "/" + std::to_string(dims.v));
}

// causal: keys up to the row's diagonal. window: keys between two distances from it, either of which may be unlimited
// (a causal window is one with no keys beyond the diagonal). Then the kinds of masks.def (mask_kinds.h). chunked: keys up
// to the diagonal, from the first one of the row's own chunk on (local_chunks.h).
enum class Mask : std::uint8_t {
  none,
  causal,
  window,
#define WAVEJIT_MASK_KIND(word, ...) word,
#include "wavejit/masks.def"
#undef WAVEJIT_MASK_KIND
};
// One of masks.def.
constexpr bool has_kind(Mask mask) { return mask > Mask::window; }
// Rows see no key before one of their own.
constexpr bool has_first_key(Mask mask) { return mask >= Mask::window; }

// Stands for no limit of a window: beyond every length, and no sum with one overflows.
inline constexpr std::int32_t unlimited_window = 1 << 30;

// Where keys and values stand. Page sizes and strides are arguments of a launch.
struct KeyLayout {
  bool paged = false;          // in pages of a cache, which a block table names (page_arguments.h)
  bool whole_tiles = false;    // pages are whole tiles of keys, and a tile is looked up as one
  bool wave_granules = false;  // each wave moves rows of one granule of a tile, and looks that up (tile_pages.h)
  bool single_keys = false;    // pages of one key (a pool of tokens): the table has an entry a key
  bool vectorised = false;     // 16 bytes of a page are 8 dims of one key of K, 8 keys of one dim of V
  bool first_keys = false;     // left padding: key 0 stands at a row, or at a slot of pages, that device memory says
  bool listed = false;         // a list in device memory names the keys of a tile, in pages or not
  bool listed_slots = false;   // its entries are slots of a cache, page · keys of a page + key: nothing is looked up

  // A page holds what a wave moves of a tile, so that one uniform look-up finds it.
  constexpr bool looks_up_for_a_wave() const { return whole_tiles || wave_granules; }
  // Neighbouring keys may stand in different pages, whatever the page size: each is looked up by itself.
  constexpr bool looks_up_each_key() const { return listed || (paged && (single_keys || first_keys)); }
  bool operator==(const KeyLayout&) const = default;
};

// Tiles of keys and values as a workgroup takes them.
struct TileShape {
  int dims_k = 0;
  int dims_v = 0;
  DataType k_type = DataType::bf16;  // as they stand in LDS
  DataType v_type = DataType::bf16;
  int waves = 0;  // of the workgroup
  CacheType cache = CacheType::as_queries;
  KeyLayout layout = {};
  // What a cache of 8 bits is widened to goes into the other of two buffers, as DMA would.
  bool two_buffers = false;
  // Elements of K and V need not stand side by side.
  bool scattered = false;
  // DMA neither widens nor turns.
  constexpr bool through_registers() const { return cache != CacheType::as_queries || scattered; }
  // Lines of LDS have neighbouring rows (lds_layout.h): a wave's DMA brings them from one granule.
  constexpr bool has_neighbours() const { return layout.wave_granules && !through_registers(); }
  // Rows take whole pieces of LDS (lds_layout.h), of 128 bytes.
  static constexpr int whole_row_bytes(int bytes) { return (bytes + 127) / 128 * 128; }
  // Whether LDS DMA fills three buffers, in place of two.
  bool three_buffers = false;
  // K and V of a tile are fetched one after the other, and the kernel waits for each separately, so that the fetch of
  // one of them is always in flight.
  bool apart = false;
  // No tile waits in registers: it is loaded when nobody reads the one before any more. Swizzled tiles.
  bool late = false;
};

}  // namespace wavejit::attention
