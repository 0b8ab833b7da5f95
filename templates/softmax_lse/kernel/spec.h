// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled softmax_lse kernel is, and its text (the cache key):
//
//   softmax_lse bf16 weights=bf16 rows=resident access=vectors target=gfx950 lowering=llvm
//
// Masks, lengths, strides and addresses are arguments of a launch. No LLVM in this header.
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
#include "templates/attention/kernel/arguments.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::softmax_lse {

using families::Lowering;
using families::to_text;

using attention::bytes_of;
using attention::DataType;
using attention::unlimited_window;

// Those that scores and weights may have, in the order in which they are listed.
inline constexpr families::Names<DataType, 3> data_types = {
    {{DataType::fp32, "fp32"}, {DataType::fp16, "fp16"}, {DataType::bf16, "bf16"}}};

// resident: a workgroup keeps all scores of its rows in registers until it knows their sums, and reads them once.
// streamed: rows are longer than that, and are read twice.
enum class Rows : std::uint8_t { resident, streamed };
inline constexpr families::Names<Rows, 2> rows_names = {{{Rows::resident, "resident"}, {Rows::streamed, "streamed"}}};

// vectors: up to 16 bytes a lane; 16-bit rows begin at whole dwords and have an even number of keys.
// elements: 16-bit tensors of any kind, an element at a time.
enum class Access : std::uint8_t { vectors, elements };
inline constexpr families::Names<Access, 2> access_names = {
    {{Access::vectors, "vectors"}, {Access::elements, "elements"}}};

// What a problem asks for.
struct AskedWords {
  static constexpr std::string_view family = "softmax_lse";
  DataType scores = DataType::fp32;
  DataType weights = DataType::fp32;  // of a call that writes none: the scores'
  Rows rows = Rows::resident;
  Access access = Access::vectors;
  bool operator==(const AskedWords&) const = default;
};

using SoftmaxKernel = families::KernelOf<AskedWords>;

// How each is told, in the order of the text, and in how many bits of a shape's code.
constexpr auto word_table_of(std::type_identity<AskedWords>) {
  return families::kernel_words<AskedWords>(
      families::named<&AskedWords::scores, data_types, SoftmaxKernel, 2>(
          {.accepted = "fp32, fp16, bf16",
           .missing = "data type of the scores (fp32, fp16 or bf16)",
           .supported = "scores"}),
      families::named<&AskedWords::weights, data_types, SoftmaxKernel, 2>(
          {.accepted = "weights=", .missing = "weights=<fp32|fp16|bf16>", .supported = "weights"}),
      families::named<&AskedWords::rows, rows_names, SoftmaxKernel, 1>(
          {.accepted = "rows=", .missing = "rows=<resident|streamed>"}),
      families::named<&AskedWords::access, access_names, SoftmaxKernel, 1>(
          {.accepted = "access=", .missing = "access=<vectors|elements>"}));
}

std::optional<std::string> refusal_of(const SoftmaxKernel& spec);
std::size_t argument_bytes(const SoftmaxKernel& spec);

// The tiles that a workgroup holds at a time, two lanes each. They belong to one row, or to several.
inline constexpr int threads = 256;
inline constexpr int tiles_of_workgroup = threads / 2;
// The fewest tiles that a row takes, used or not.
inline constexpr int min_tiles_of_row = 4;
// How a kernel holds rows of `keys` keys.
Rows rows_of(std::int64_t keys);
// What dense tensors allow; `unaligned` 16-bit rows begin at any element.
Access access_of(DataType scores, DataType weights, std::int64_t keys, bool unaligned);

// As many waves on a SIMD as the emission asks registers for.
inline constexpr int waves_per_simd = 4;

// Byte for byte what the kernel reads. Strides are in bytes.
struct Arguments {
  std::uint64_t scores = 0;
  std::uint64_t weights = 0;      // null: none are written
  std::uint64_t lse = 0;          // f32, the rows of a head side by side; null: none
  std::uint64_t key_lengths = 0;  // int32 [batch]; null: all keys count
  std::uint64_t scores_batch_stride = 0;
  std::uint64_t scores_head_stride = 0;
  std::uint64_t weights_batch_stride = 0;
  std::uint64_t weights_head_stride = 0;
  std::uint64_t lse_batch_stride = 0;
  std::uint64_t lse_head_stride = 0;
  std::uint32_t scores_row_stride = 0;
  std::uint32_t weights_row_stride = 0;
  attention::SeenArguments seen;
  float scale_log2e = 0;
  float rescale_threshold = 0;
  std::uint32_t rows = 0;        // of a workgroup: at most tiles_of_workgroup >> tile_shift
  std::uint32_t tile_shift = 0;  // 1 << tile_shift tiles of a row at a time
};
static_assert(sizeof(Arguments) == 128);
// Workgroups: x = rows, y = head, z = batch.

inline constexpr std::int64_t max_length = std::int64_t{1} << 28;

}  // namespace wavejit::softmax_lse
