// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled cache_append kernel is, and its text (the cache key):
//
//   cache_append bf16 cache=bf16 source=vectors keys=vectors values=vectors rotary=halves angles=bf16 target=gfx950 …
//
// Heads, dims, pages, strides and addresses are arguments of a launch. No LLVM in this header.
#pragma once

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
#include "templates/attention/kernel/types.h"
#include "templates/cache_append/kernel/arguments.h"

namespace wavejit::cache_append {

using families::Lowering;
using families::to_text;

using attention::bytes_of;
using attention::DataType;

// Of what is appended.
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

// What a problem asks for.
struct AskedWords {
  DataType source = DataType::bf16;
  DataType cache = DataType::bf16;
  Access source_access = Access::vectors;
  Access key_access = Access::vectors;
  Access value_access = Access::vectors;
  Rotary rotary = Rotary::none;
  Angles angles = Angles::none;
  Access queries = Access::none;  // of Q, where it goes: it is turned, too
  bool operator==(const AskedWords&) const = default;
};

struct AppendKernel : AskedWords {
  static constexpr std::string_view kernel = "cache_append";
  static constexpr std::string_view family = "cache_append";

  std::string target;
  Lowering lowering = Lowering::llvm;

  bool operator==(const AppendKernel&) const = default;
};

// How each is told, in the order of the text, and in how many bits of a shape's code.
inline constexpr auto word_table = std::tuple{
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
    families::target_word<AppendKernel>(),
    families::lowering_word<AppendKernel>(),
};

std::string to_text(const AppendKernel& spec);
std::expected<AppendKernel, std::string> parse_spec(std::string_view text);
std::optional<std::string> refusal_of(const AppendKernel& spec);
std::size_t argument_bytes(const AppendKernel& spec);

// As many waves on a SIMD as the emission asks registers for.
inline constexpr int waves_per_simd = 4;

}  // namespace wavejit::cache_append
