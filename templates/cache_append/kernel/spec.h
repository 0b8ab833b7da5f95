// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled cache_append kernel is, and its text (the cache key):
//
//   cache_append bf16 cache=bf16 source=vectors keys=vectors values=vectors rotary=halves angles=bf16 target=gfx950 …
//
// Heads, dims, pages, strides and addresses are arguments of a launch. No LLVM in this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "families/kernel/kernel_of.h"
#include "families/kernel/names.h"
#include "families/kernel/spec_words.h"
#include "templates/attention/kernel/output_scale.h"
#include "templates/attention/kernel/types.h"
#include "templates/cache_append/kernel/arguments.h"

namespace wavejit::cache_append {

using families::Lowering;
using families::to_text;

using attention::bytes_of;
using attention::DataType;
using attention::is_narrow;

// The types of what is appended.
using attention::operand_types;

// vectors: eight dims of a head at a time, which stand side by side. elements: dims of any stride, one at a time.
enum class Access : std::uint8_t { vectors, elements, none };
inline constexpr families::Names<Access, 2> access_names = {
    {{Access::vectors, "vectors"}, {Access::elements, "elements"}}};

// Which two dims are turned together: d and d + half of the rotary dims, or 2d and 2d + 1.
enum class Rotary : std::uint8_t { none, halves, interleaved };
inline constexpr families::Names<Rotary, 3> rotary_names = {
    {{Rotary::none, "none"}, {Rotary::halves, "halves"}, {Rotary::interleaved, "interleaved"}}};

// Where cosines and sines come from: tables of a type, or a base, whose frequencies are arguments of the launch.
enum class Angles : std::uint8_t { none, base, fp32, fp16, bf16 };
inline constexpr families::Names<Angles, 4> angle_names = {
    {{Angles::base, "base"}, {Angles::fp32, "fp32"}, {Angles::fp16, "fp16"}, {Angles::bf16, "bf16"}}};

// What the bytes of a cache of 8 bits are counted in. heads: in numbers that the caller has, one for each head. tokens:
// in one for each token of each head, which is found and stored. tiles, exponents: rows of latent attention, of 656
// bytes with an fp32 for each 128 dims, of 584 with an exponent for each 64; K is the rope there, and stays in 16 bits.
enum class Scales : std::uint8_t { none, heads, tokens, tiles, exponents };
inline constexpr families::Names<Scales, 4> scale_names = {
    {{Scales::heads, "heads"}, {Scales::tokens, "tokens"}, {Scales::tiles, "tiles"}, {Scales::exponents, "exponents"}}};
constexpr bool in_rows(Scales scales) { return scales == Scales::tiles || scales == Scales::exponents; }

// How a row of latent attention is laid out, in bytes.
struct LatentRow {
  int columns;      // of the cache, as its tensor has them
  int latent_dims;  // in 8 bits, from the row's beginning
  int tile_dims;
  int rope;    // where the rope begins
  int stride;  // from row to row of a page
};
inline constexpr int rope_dims = 64;
inline constexpr LatentRow row_of_tiles = {656, 512, 128, 528, 656};
// Exponents lie after the rows of a page: eight bytes a row, one for each tile.
inline constexpr LatentRow row_of_exponents = {584, 448, 64, 448, 576};
inline constexpr int exponents_of_row = 8;
constexpr const LatentRow& latent_row(Scales scales) {
  return scales == Scales::tiles ? row_of_tiles : row_of_exponents;
}
// A latent has lanes of one wave, eight dims each.
constexpr bool has_rows(const targets::Target& target) {
  return row_of_tiles.latent_dims <= dims_of_lane * target.wave_size;
}

// The greatest number of a token, or of a tile, is written as this one of the format.
using attention::limit_of;
// Lower bounds of the scales that the kernel computes: for a token, and for a tile, whose scale is a power of two.
inline constexpr float least_token_scale = 1e-6F;
inline constexpr float least_tile_scale = 0x1p-100F;

// What a problem asks for.
struct AskedWords {
  static constexpr std::string_view family = "cache_append";
  DataType source = DataType::bf16;
  DataType cache = DataType::bf16;
  Access source_access = Access::vectors;
  Access key_access = Access::vectors;
  Access value_access = Access::vectors;
  Rotary rotary = Rotary::none;
  Angles angles = Angles::none;
  Access queries = Access::none;  // of Q, where it goes: it is turned, too
  Scales scales = Scales::none;   // of a cache of 8 bits
  bool operator==(const AskedWords&) const = default;
};

using AppendKernel = families::KernelOf<AskedWords>;

// How each is told, in the order of the text, and in how many bits of a shape's code.
constexpr auto word_table_of(std::type_identity<AskedWords>) {
  return families::kernel_words<AskedWords>(
      families::named<&AskedWords::source, operand_types, AppendKernel, 3>(
          {.accepted = "fp16, bf16", .missing = "data type (fp16 or bf16)", .supported = "from"}),
      families::named<&AskedWords::cache, attention::data_types, AppendKernel, 4>(
          {.accepted = "cache=", .missing = "cache=<type>", .supported = "to"}),
      families::named<&AskedWords::source_access, access_names, AppendKernel, 1>(
          {.accepted = "source=", .missing = "source=<vectors|elements>"}),
      families::named<&AskedWords::key_access, access_names, AppendKernel, 1>(
          {.accepted = "keys=", .missing = "keys=<vectors|elements>"}),
      families::named<&AskedWords::value_access, access_names, AppendKernel, 1>(
          {.accepted = "values=", .missing = "values=<vectors|elements>"}),
      families::named<&AskedWords::rotary, rotary_names, AppendKernel, 2>(
          {.accepted = "rotary=", .missing = "rotary=<none|halves|interleaved>"}),
      families::named<&AskedWords::angles, angle_names, AppendKernel, 3>({.accepted = "angles="}),
      families::named<&AskedWords::queries, access_names, AppendKernel, 2>({.accepted = "queries="}),
      families::named<&AskedWords::scales, scale_names, AppendKernel, 3>({.accepted = "scales="}));
}

std::optional<std::string> refusal_of(const AppendKernel& spec);
std::size_t argument_bytes(const AppendKernel& spec);

// As many waves on a SIMD as the emission asks registers for. Bytes wait for a scale and for the greatest of a head,
// which more waves hide; turned ones need the registers.
constexpr int waves_per_simd(const AskedWords& spec) {
  constexpr int usual = 4;
  return is_narrow(spec.cache) && spec.rotary == Rotary::none ? 2 * usual : usual;
}

}  // namespace wavejit::cache_append
