// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled attention_merge kernel is, and its text (the cache key):
//
//   attention_merge bf16 out=bf16 target=gfx950 …
//
// Heads, dims, strides, addresses and the number of parts are arguments of a launch. No LLVM in this header.
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
#include "templates/attention/kernel/types.h"
#include "templates/attention_merge/kernel/arguments.h"

namespace wavejit::attention_merge {

using families::Lowering;
using families::to_text;

using attention::bytes_of;
using attention::DataType;

// The types of O: of parts, and of the result.
inline constexpr auto part_types = attention::wide_types;
inline constexpr auto output_types = attention::written_types;

// What a problem asks for.
struct AskedWords {
  static constexpr std::string_view family = "attention_merge";
  DataType parts = DataType::bf16;
  DataType out = DataType::bf16;
  bool operator==(const AskedWords&) const = default;
};

using MergeKernel = families::KernelOf<AskedWords>;

// How each is told, in the order of the text, and in how many bits of a shape's code.
constexpr auto word_table_of(std::type_identity<AskedWords>) {
  return families::kernel_words<AskedWords>(
      families::named<&AskedWords::parts, part_types, MergeKernel, 4>(
          {.accepted = "bf16, fp16, fp32",
           .missing = "data type of the parts (bf16, fp16 or fp32)",
           .supported = "of"}),
      families::named<&AskedWords::out, output_types, MergeKernel, 4>(
          {.accepted = "out=", .missing = "out=<bf16|fp16|fp32|e4m3|e4m3_fnuz|i8>", .supported = "to"}));
}

std::optional<std::string> refusal_of(const MergeKernel& spec);
std::size_t argument_bytes(const MergeKernel& spec);

// As many waves on a SIMD as the emission asks registers for: memory is all that they wait for.
inline constexpr int waves_per_simd = 8;

}  // namespace wavejit::attention_merge
