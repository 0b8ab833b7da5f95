// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles in lines (lds_layout.h), filled by 16-byte LDS DMA, two buffers; V transposed by the read.
#pragma once

#include "templates/attention_forward/emit/tiles.h"

namespace wavejit::attention_forward {

class LineTiles final : public Tiles {
 public:
  LineTiles(language::Kernel& kernel, const KernelSpec& spec, const LdsPlan& plan, const Workgroup& workgroup,
            const language::MatrixUnit& matrix);

  language::Values start(language::Value* tile) override;
  language::Values advance(int buffer, language::Value* tile, language::Value* tiles,
                           const language::Values& in_flight) override;
  // Single steps, for a pipeline that places waits and barriers itself: one tile of K or V on its way into a buffer, in
  // k_transfers() or v_transfers() DMA instructions of this wave.
  void fetch_keys(int buffer, language::Value* tile);
  void fetch_values(int buffer, language::Value* tile);
  int k_transfers() const { return static_cast<int>(k_.lane_offsets.size()); }
  int v_transfers() const { return static_cast<int>(v_.lane_offsets.size()); }

  language::OperandA keys(int buffer, int key_block, int dim_block) override;
  language::OperandA values_transposed(int buffer, int dim_block, int key_block) override;
  // The same from a buffer that is known at run time only: where a lane's reads start in it, and the reads. These wait
  // for every transfer that is in flight.
  language::Value* values_start(language::Value* buffer);
  language::OperandA values_transposed(language::Value* start, int dim_block, int key_block);

 private:
  // One of K and V.
  struct Stream {
    const Slice* slice;
    int line_bytes;
    int pieces;                                  // 64-element pieces of a row
    std::vector<language::Value*> lane_offsets;  // of each DMA instruction of this wave, [line group][piece]
    language::Value* lds_line;                   // this wave's first line, bytes
  };

  Stream make_stream(const Slice& slice, int line_bytes, int head_dim);
  void fill(const Stream& stream, int region, int region_offset, language::Value* tile_row);
  language::OperandA values_at(int region, language::Value* start, int offset, int dim_block, int key_block);
  void fill_tile(int buffer, language::Value* tile);
  // LDS regions, one alias scope each.
  static constexpr int k_region(int buffer) { return 2 * buffer; }
  static constexpr int v_region(int buffer) { return 2 * buffer + 1; }

  language::Kernel& kernel_;
  LdsPlan plan_;
  const language::MatrixUnit& matrix_;
  language::Lds lds_;
  int tile_keys_;
  int waves_;
  Stream k_;
  Stream v_;
  language::Value* k_read_;  // per lane: where its K fragments start
  language::Value* v_read_;
};

}  // namespace wavejit::attention_forward
