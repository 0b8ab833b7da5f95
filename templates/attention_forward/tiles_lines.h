// Tiles in lines (lds_layout.h), filled by 16-byte LDS DMA, two buffers; V transposed by the read.
#pragma once

#include "templates/attention_forward/tiles.h"

namespace wavejit::attention_forward {

class LineTiles final : public Tiles {
 public:
  LineTiles(language::Kernel& kernel, const KernelSpec& spec, const LdsPlan& plan, const Workgroup& workgroup,
            const language::MatrixUnit& matrix);

  language::Values start() override;
  language::Values advance(int buffer, language::Value* tile, language::Value* tiles,
                           const language::Values& in_flight) override;
  language::OperandA keys(int buffer, int key_block, int dim_block) override;
  language::OperandA values_transposed(int buffer, int dim_block, int key_block) override;

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
