// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of vectorised pages (vectorised_pages.h). K stands in LDS in lines as it is loaded, [8 dims][64 keys][8 dims]:
// 16 bytes a lane are a fragment's. Of V a lane of group h wants keys 4h … 4h + 3 and 8 + 4h … 8 + 4h + 3 of a block of
// 16, which memory has as keys 0 … 7 and 8 … 15:
//
//   LineUnits      lines by LDS DMA into the other of two buffers; a fragment is two reads of 8 bytes. (One of 16, of
//                  which lane groups swap the halves they do not want, takes a vector unit that softmax needs.)
//   RegisterUnits  loads into registers, written to the one buffer; there a dim's keys stand as they are wanted,
//                  [block of 16 keys][lane group][dim]
#pragma once

#include <array>
#include <functional>

#include "templates/attention/emit/tiles.h"
#include "templates/attention/emit/vectorised_pages.h"

namespace wavejit::attention {

// Fragments that a pair of functions read: K by rows, V transposed. Each is staged for its own way only.
template <typename Units>
class UnitStream final : public TileStream {
 public:
  using Read = language::OperandA (Units::*)(int buffer, int first_block, int second_block);
  UnitStream(language::Kernel& kernel, Units& units, Read rows, Read transposed)
      : kernel_(kernel), units_(units), rows_(rows), transposed_(transposed) {}
  language::OperandA rows(int buffer, int row_block, int dim_block) override {
    return read(rows_, buffer, row_block, dim_block);
  }
  language::OperandA transposed(int buffer, int dim_block, int row_block) override {
    return read(transposed_, buffer, dim_block, row_block);
  }

 private:
  language::OperandA read(Read by, int buffer, int first_block, int second_block) {
    if (by != nullptr) return (units_.*by)(buffer, first_block, second_block);
    kernel_.refuse("units of vectorised pages are staged for one way of reading");
    return {};
  }

  language::Kernel& kernel_;
  Units& units_;
  Read rows_;
  Read transposed_;
};

class LineUnits final : public Tiles {
 public:
  LineUnits(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
            language::Value* lane_group, const language::MatrixUnit& matrix);

  // Its streams refer to it.
  LineUnits(const LineUnits&) = delete;
  LineUnits& operator=(const LineUnits&) = delete;

  language::Values start(const Stops& stops, const TileWalk& walk) override;
  language::Values advance(int buffer, const Stops& stops, const TileWalk& walk,
                           const language::Values& in_flight) override;
  TileStream& keys() override { return k_stream_; }
  TileStream& values() override { return v_stream_; }

 private:
  language::OperandA key_rows(int buffer, int key_block, int dim_block);
  language::OperandA values_transposed(int buffer, int dim_block, int key_block);
  static constexpr int k_region(int buffer) { return 2 * buffer; }
  static constexpr int v_region(int buffer) { return (2 * buffer) + 1; }

  // `unseen`: unseen_keys.h.
  void fill(int buffer, language::Value* tile, language::Value* entries, language::Value* unseen = nullptr);
  // This wave's lines of V become what `cut` makes of them, before others read them.
  void cut_values(int buffer, const std::function<language::Values(const language::Values&)>& cut);

  language::Kernel& kernel_;
  LdsPlan plan_;
  const language::MatrixUnit& matrix_;
  language::Lds lds_;
  VectorisedPages pages_;
  language::Value* k_line_;  // this wave's first, bytes
  language::Value* v_line_;
  language::Value* k_read_;                   // per lane
  std::array<language::Value*, 2> v_read_{};  // of each half of a granule
  UnitStream<LineUnits> k_stream_{kernel_, *this, &LineUnits::key_rows, nullptr};
  UnitStream<LineUnits> v_stream_{kernel_, *this, nullptr, &LineUnits::values_transposed};
};

class RegisterUnits final : public Tiles {
 public:
  RegisterUnits(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
                language::Value* lane_group, const language::MatrixUnit& matrix);

  // Its streams refer to it.
  RegisterUnits(const RegisterUnits&) = delete;
  RegisterUnits& operator=(const RegisterUnits&) = delete;

  language::Values start(const Stops& stops, const TileWalk& walk) override;
  language::Values advance(int buffer, const Stops& stops, const TileWalk& walk,
                           const language::Values& in_flight) override;
  TileStream& keys() override { return k_stream_; }
  TileStream& values() override { return v_stream_; }

 private:
  language::OperandA key_rows(int buffer, int key_block, int dim_block);
  language::OperandA values_transposed(int buffer, int dim_block, int key_block);
  static constexpr int k_region = 0;
  static constexpr int v_region = 1;

  // K, V, and the entries of the next tile.
  language::Values load(const Stop& stop, const Stop& next, const TileWalk& walk, language::Value* entries,
                        language::Value* unseen = nullptr);
  void write(const language::Values& loaded);
  int v_group_bytes() const { return head_dim_v_ * VectorisedPages::unit_bytes; }

  language::Kernel& kernel_;
  LdsPlan plan_;
  const language::MatrixUnit& matrix_;
  language::Lds lds_;
  VectorisedPages pages_;
  int head_dim_v_;
  language::Value* k_write_;  // per lane
  language::Value* v_write_;
  language::Value* k_read_;
  language::Value* v_read_;
  UnitStream<RegisterUnits> k_stream_{kernel_, *this, &RegisterUnits::key_rows, nullptr};
  UnitStream<RegisterUnits> v_stream_{kernel_, *this, nullptr, &RegisterUnits::values_transposed};
};

}  // namespace wavejit::attention
