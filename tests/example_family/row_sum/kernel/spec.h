// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled row_sum kernel is, and its text (the cache key):
//
//   row_sum fp16 target=gfx950 lowering=llvm
//
// Rows, columns and addresses are arguments of a launch. No LLVM in this header.
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

namespace wavejit::row_sum {

using families::Lowering;
using families::to_text;

enum class DataType : std::uint8_t { fp32, fp16 };
inline constexpr families::Names<DataType, 2> data_types = {{{DataType::fp32, "fp32"}, {DataType::fp16, "fp16"}}};

// What a problem asks for.
struct AskedWords {
  static constexpr std::string_view family = "row_sum";
  DataType dtype = DataType::fp32;
  bool operator==(const AskedWords&) const = default;
};

using RowSumKernel = families::KernelOf<AskedWords>;

// Text, parser, lists of what is accepted and the bits of a shape's code come from these rows, in the order of the text.
constexpr auto word_table_of(std::type_identity<AskedWords>) {
  return families::kernel_words<AskedWords>(families::named<&AskedWords::dtype, data_types, RowSumKernel, 1>(
      {.accepted = "fp32, fp16", .missing = "data type (fp32 or fp16)", .supported = "dtypes"}));
}

std::optional<std::string> refusal_of(const RowSumKernel& spec);
std::size_t argument_bytes(const RowSumKernel& spec);

// Each thread adds one row, a few elements a load.
inline constexpr int threads = 256;
inline constexpr int elements_per_load = 4;
constexpr int element_bytes(DataType dtype) { return dtype == DataType::fp32 ? 4 : 2; }

// Byte for byte what the kernel reads.
struct Arguments {
  std::uint64_t input = 0;   // [rows][columns]
  std::uint64_t output = 0;  // f32 [rows]
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};
static_assert(sizeof(Arguments) == 24);

}  // namespace wavejit::row_sum
