// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call into a cache of 8 bits writes, byte by byte: keys, values, their scales and the turned Q one behind the
// other, or rows of latent attention, in which they stand together. Rows of eight bytes, for tools/array_problem.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "templates/cache_append/program/appended.h"
#include "tools/byte_float.h"
#include "tools/checker.h"

namespace wavejit::cache_append::program {

class NarrowOutput {
 public:
  static constexpr std::int64_t row_bytes = 8;

  explicit NarrowOutput(std::shared_ptr<const Appended> all);

  std::int64_t rows() const { return bytes_ / row_bytes; }
  // What stands in bytes of nobody: zeros.
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> before() const;
  float read(std::span<const std::byte> row, std::int64_t number, std::int64_t column) const;
  // A column of a row in float64, and how far it may be off: half a unit of the format, and what rotation may be.
  struct Answer {
    double value = 0;
    double bound = 0;
  };
  Answer answer(std::int64_t row, std::int64_t column) const;
  // The tensors that are written, and the scales that are read.
  void place(wavejit_cache_append_arguments& call, void* output, void* k_scales, void* v_scales) const;
  // The scales of heads; none where they are found, or 1.
  const std::vector<float>& given(std::size_t side) const { return all_->given_scales[side]; }

  // Bytes of all that stands in memory.
  std::int64_t bytes() const { return bytes_; }
  tools::Comparison comparison(std::span<const std::byte> bytes) const;
  // The numbers of keys (0), values (1) or Q (2), in the order of the tensor's axes; those of 8 bits as they stand
  // there, without scales.
  std::vector<float> numbers(std::span<const std::byte> bytes, std::size_t side) const;
  // Those that were found, [slot][head or tile].
  std::vector<float> scales(std::span<const std::byte> bytes, std::size_t side) const;
  std::int64_t scales_of_slot() const;

 private:
  enum class Kind : std::uint8_t { nothing, byte, exponent, half, scale };
  struct Cell {
    Kind kind = Kind::nothing;
    std::size_t side = 0;
    std::int64_t token = -1;
    std::int64_t head = 0;  // of a scale in rows: the tile
    std::int64_t dim = 0;
  };
  // A scale of a token's head, or of a tile, and how far it may be off.
  struct Scale {
    double value = 1;
    double bound = 0;
  };
  // The cell of a byte of the output.
  Cell cell(std::int64_t at) const;
  Cell cell_of_row(std::int64_t at) const;
  std::int64_t owner(std::int64_t slot) const { return all_->owners[static_cast<std::size_t>(slot)]; }
  // Bytes of a column: of elements of two bytes a row has four columns.
  static std::int64_t width(Kind kind) { return kind == Kind::half ? 2 : kind == Kind::scale ? 4 : 1; }
  Scale scale_of(std::size_t side, std::int64_t token, std::int64_t head) const;
  Turned element(std::size_t side, std::int64_t token, std::int64_t head, std::int64_t dim) const;
  void find_scales();

  std::shared_ptr<const Appended> all_;
  tools::ByteType type_;
  double limit_;
  std::vector<Scale> found_[2];  // [token][head], or [token][tile]
  // Where keys, values, scales of both and Q begin; those of rows are one.
  std::int64_t first_[5] = {};
  std::int64_t bytes_ = 0;
};

}  // namespace wavejit::cache_append::program
