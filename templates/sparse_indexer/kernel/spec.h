// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the two kernels of sparse_indexer are, and their texts (the cache keys):
//
//   sparse_scores bf16 heads=64 paged target=gfx950 lowering=llvm
//   sparse_scores bf16 heads=64 paged shared target=gfx950 lowering=llvm
//   sparse_scores e4m3 heads=64 paged target=gfx950 lowering=llvm
//   sparse_select target=gfx950 lowering=llvm
//
// Rows, keys, k, masks, page sizes and addresses are arguments of a launch. No LLVM in this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "families/kernel/kernel_spec.h"
#include "families/kernel/names.h"
#include "families/kernel/spec_words.h"
#include "templates/attention/kernel/arguments.h"
#include "templates/attention/kernel/page_arguments.h"
#include "templates/attention/kernel/types.h"
#include "templates/attention/kernel/words.h"

namespace wavejit::sparse_indexer {

using attention::DataType;
using attention::unlimited_window;
using families::Lowering;
using families::to_text;

inline constexpr std::string_view family_name = "sparse_indexer";

// Dims of a query head and of a key: what every published indexer has.
inline constexpr int head_dim = 128;
// The index heads of one matrix instruction.
inline constexpr int block_heads = 32;
inline constexpr int max_blocks = 4;
inline constexpr int max_heads = block_heads * max_blocks;
// Keys of a tile, which a wave takes at a time.
inline constexpr int tile_keys = 32;

// The types of queries and keys, which are the same. 8-bit ones are widened to bf16, exactly, and then multiplied.
inline constexpr families::Names<DataType, 4> key_types = {
    {{DataType::bf16, "bf16"}, {DataType::fp16, "fp16"}, {DataType::e4m3, "e4m3"}, {DataType::e4m3_fnuz, "e4m3_fnuz"}}};

// The numbers of heads that kernels have room for, by blocks of heads.
inline constexpr families::Names<int, max_blocks> head_names = {{{1, "32"}, {2, "64"}, {3, "96"}, {4, "128"}}};

struct ScoresKernel {
  static constexpr std::string_view kernel = "sparse_scores";
  static constexpr std::string_view family = family_name;

  DataType type = DataType::bf16;  // of queries and keys
  int blocks = 0;                  // of heads
  bool cut = false;                // the last block has fewer heads
  bool paged = false;              // keys lie in pages, which a block table names
  bool shared = false;             // rows of a workgroup share keys through LDS; else each wave reads its own keys
  std::string target;
  Lowering lowering = Lowering::llvm;

  bool widens() const { return attention::is_narrow(type); }
  bool operator==(const ScoresKernel&) const = default;
};

inline constexpr auto scores_words = std::tuple{
    families::named<&ScoresKernel::type, key_types, ScoresKernel, 3>(
        {.accepted = "bf16, fp16, e4m3, e4m3_fnuz",
         .missing = "data type (bf16, fp16, e4m3 or e4m3_fnuz)",
         .supported = "dtypes",
         .name_of = [](const families::SpecWord<ScoresKernel>&,
                       const ScoresKernel& spec) { return std::string(attention::to_text(spec.type)); }}),
    families::named<&ScoresKernel::blocks, head_names, ScoresKernel>(
        {.accepted = "heads=",
         .missing = "heads=<32|64|96|128>",
         .supported = "heads up to",
         .name_of = [](const families::SpecWord<ScoresKernel>&,
                       const ScoresKernel& spec) { return "h" + std::to_string(spec.blocks * block_heads); }}),
    families::flag<&ScoresKernel::cut, ScoresKernel>({.accepted = "cut", .name = "cut"}),
    families::flag<&ScoresKernel::paged, ScoresKernel>(
        {.accepted = "paged", .name = "paged", .supported = "keys dense or in pages of 1 and of 16 n"}),
    families::flag<&ScoresKernel::shared, ScoresKernel>({.accepted = "shared", .name = "shared"}),
    families::target_word<ScoresKernel>(),
    families::lowering_word<ScoresKernel>(),
};

struct SelectKernel {
  static constexpr std::string_view kernel = "sparse_select";
  static constexpr std::string_view family = family_name;

  std::string target;
  Lowering lowering = Lowering::llvm;

  bool operator==(const SelectKernel&) const = default;
};

inline constexpr auto select_words = std::tuple{
    families::target_word<SelectKernel>(),
    families::lowering_word<SelectKernel>(),
};

std::string to_text(const ScoresKernel& spec);
std::string to_text(const SelectKernel& spec);
std::expected<ScoresKernel, std::string> parse_scores(std::string_view text);
std::expected<SelectKernel, std::string> parse_select(std::string_view text);
std::optional<std::string> refusal_of(const ScoresKernel& spec);
std::optional<std::string> refusal_of(const SelectKernel& spec);
std::size_t argument_bytes(const ScoresKernel& spec);
std::size_t argument_bytes(const SelectKernel& spec);

// How many waves a SIMD should hold, which bounds the registers. Queries of three blocks and more fill half of the
// register file.
constexpr int scores_waves_per_simd(int blocks) { return blocks <= 2 ? 2 : 1; }
inline constexpr int scores_waves = 4;
inline constexpr int scores_threads = 256;
// log2 of the rows of a workgroup that share keys: one row for each wave.
inline constexpr int shared_rows_shift = 2;
static_assert(scores_waves == 1 << shared_rows_shift);

inline constexpr int select_waves = 16;
inline constexpr int select_threads = 1024;
inline constexpr int select_lanes = select_threads / select_waves;

// ---- The arguments as kernels read them, byte for byte. Strides are in bytes.

// The keys that a row sees, as both kernels compute them.
struct RowArguments {
  std::uint64_t key_lengths = 0;  // int32 [batch]; null: all keys count
  std::uint64_t key_begins = 0;   // int32 [batch · queries], the row's first key; null: key 0
  std::uint64_t key_ends = 0;     // the key after the row's last; null: the sequence's end
  attention::SeenArguments seen;
  // The rows of a round, for each of its sequences: first_row … end_row − 1.
  std::uint32_t first_batch = 0;
  std::uint32_t first_row = 0;
  std::uint32_t end_row = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RowArguments) == 64);

struct ScoresArguments {
  RowArguments rows;
  std::uint64_t queries = 0;
  std::uint64_t keys = 0;
  std::uint64_t weights = 0;     // f32
  std::uint64_t key_scales = 0;  // f32; null: 1
  std::uint64_t scores = 0;      // f32; the address is that of batch 0, row 0, even if a workspace does not hold them
  std::uint64_t queries_batch_stride = 0;
  std::uint64_t queries_row_stride = 0;
  std::uint64_t keys_batch_stride = 0;  // for pages: from page to page; the scales' stride likewise
  std::uint64_t keys_row_stride = 0;
  std::uint64_t weights_batch_stride = 0;
  std::uint64_t weights_row_stride = 0;
  std::uint64_t scales_batch_stride = 0;
  std::uint64_t scales_row_stride = 0;
  std::uint64_t scores_batch_stride = 0;
  std::uint64_t scores_row_stride = 0;
  attention::PageArguments pages;
  std::uint32_t granule_shift = 0;  // a granule is 1 << granule_shift keys: 16, or 1 for pages of one key
  std::uint32_t queries_head_stride = 0;
  std::uint32_t heads = 0;
  std::uint32_t rows_shift = 0;   // 1 << rows_shift waves have rows of their own, the others more tiles
  std::uint32_t wave_tiles = 0;   // of a wave's run
  std::uint32_t fill_hidden = 0;  // 1: −∞ is written for keys that the row does not see
};
static_assert(sizeof(ScoresArguments) == 248);
// Workgroups: x = rows, y = runs of keys, z = batch.

struct SelectArguments {
  RowArguments rows;
  std::uint64_t scores = 0;
  std::uint64_t indices = 0;  // int32 [batch · queries, top_k]
  std::uint64_t values = 0;   // f32, as indices; null: none
  std::uint64_t counts = 0;   // int32 [batch · queries]; null: none
  std::uint64_t scores_batch_stride = 0;
  std::uint64_t scores_row_stride = 0;
  std::uint64_t indices_row_stride = 0;  // of indices and of values
  // The keys that the scores stand for, int32, strides as those of scores; null: a score stands at its key.
  std::uint64_t keys = 0;
  std::uint64_t part_stride = 0;  // of indices and of values, from one part of a row to the next
  std::uint32_t top_k = 0;
  std::uint32_t part_keys = 0;  // a part has the keys from z · part_keys on
};
static_assert(sizeof(SelectArguments) == 144);
// Workgroups: x = row, y = batch, z = part of the row.

// A buffer descriptor spans less than 4 GiB: that of a row of scores does.
inline constexpr std::int64_t max_keys = std::int64_t{1} << 28;
inline constexpr std::int64_t max_top_k = std::int64_t{1} << 20;

}  // namespace wavejit::sparse_indexer
