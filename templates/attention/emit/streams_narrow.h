// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor's tiles of 8 bits, or of scattered elements, where LDS has lines (lds_layout.h): loaded into registers,
// widened or packed, and written to the places where DMA would have put them. They are read as lines are.
#pragma once

#include <optional>

#include "templates/attention/emit/stream_lines.h"
#include "templates/attention/emit/streams_swizzled.h"

namespace wavejit::attention {

class NarrowLines final : public RowLoads {
 public:
  NarrowLines(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
              const LineStream::Place& place, int dims, int waves, const std::optional<KeyPages>& pages,
              const std::optional<TilePages>& tile_pages, CacheType cache);

  // How it is read (LineStream): once, before the first read.
  void begin_rows(language::Value* lane_group) { image_.begin_rows(lane_group); }
  void begin_transposed(language::Value* lane_group) { image_.begin_transposed(lane_group); }

  language::Strand write(const language::Values& loaded) override { return write(0, loaded); }
  language::Strand write(int buffer, const language::Values& loaded);
  // The two halves of `write`, for callers that widen early and write later: `units` become what LDS will hold, 16
  // bytes each, in operations of about one issue slot; `units` and `loaded` must stay until the last operation.
  language::Strand widen(const language::Values& loaded, language::Values& units) const;
  void write_units(int buffer, const language::Values& units);
  language::OperandA rows(int buffer, int row_block, int dim_block) override {
    return image_.rows(buffer, row_block, dim_block);
  }
  language::OperandA transposed(int buffer, int dim_block, int row_block) override {
    return image_.transposed(buffer, dim_block, row_block);
  }

 private:
  void write_unit(int buffer, int load, int half, language::Value* unit);
  // The bytes that a load takes in LDS: twice as many as in memory if it is widened. They belong to one piece of a row.
  int bytes_of_load() const { return (widens() ? 2 : 1) * width_; }
  int loads_of_piece() const { return LdsPlan::piece_bytes / bytes_of_load(); }
  // The units of 16 bytes that a load takes in LDS.
  int units_of_load() const { return bytes_of_load() / unit_bytes; }

  LineStream::Place place_;
  LineStream image_;
};

}  // namespace wavejit::attention
