// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles in padded rows (lds_layout.h), one buffer each, for a pipeline that places arrivals and waits itself.
//
// K comes in pieces of rows and is written as it came. V is turned on its way from memory into registers, a block of
// 16 keys × 16 dims an instruction. Of both the next tile is in registers, or on its way there, while this one is
// worked on. Two barriers a tile, each of which has work between arrival and wait:
//
//   wait            K of this tile is whole; nobody reads the V of the tile before any more
//   put_values      V of this tile goes into LDS, the next one's is asked for
//   … K is read, S = K · Q …
//   arrive          this wave's reads of K have returned, and its part of V stands
//   … softmax …
//   wait            V of this tile is whole; nobody reads K any more
//   put_keys        K of the next tile goes into LDS, that of the tile behind it is asked for
//   … V is read, O += V · P …
//   arrive          this wave's reads of V have returned, and its part of K stands
//
// A transposing load has no bound and asks all lanes. So places are cut to the last key that lives: keys behind it have
// its values, which are multiplied with the zeros that the mask makes their weights, and what stands behind the last
// row of a tensor is never read. Keys in front of a window have the values of the first one that is seen. Without any
// key nothing is loaded, and V is zeros.
#pragma once

#include <optional>

#include "codegen/language/synchronize.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/streams_swizzled.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

class PaddedRows final : public RowLoads {
 public:
  PaddedRows(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
             int region, int offset, int dims, int threads, language::Value* lane_group,
             const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages);

  language::Strand write(const language::Values& loaded) override;
  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  int row_bytes_;
};

class PaddedTransposed final : public TileStream {
 public:
  PaddedTransposed(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
                   int region, int offset, int dims, int waves, language::Value* lane_group,
                   const std::optional<KeyPages>& pages);

  int loads() const { return blocks_; }
  // Loads a tile that has a key. `entries`: for keys that are looked up. `unseen` (unseen_keys.h): the first key that
  // is seen is read in place of them; there is one.
  language::Values fetch(language::Value* tile, language::Value* entries, language::Value* unseen = nullptr) const;
  void write(const language::Values& loaded) const;
  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  language::Kernel& kernel_;
  language::Lds& lds_;
  const language::MatrixUnit& matrix_;
  Slice slice_;
  int region_;
  int offset_;
  int row_bytes_;                // of LDS: the keys of a dim
  int memory_row_bytes_;         // of memory: the dims of a key
  int blocks_;                   // of dims, that a wave turns
  language::Value* key_block_;   // of the wave, uniform
  language::Value* row_offset_;  // per lane, in bytes: its row of the block, or of the tile where keys are dense
  language::Values columns_;  // per lane, in bytes: where a block's dims begin; one, if the others are constants apart
  language::Value* write_;
  language::Values read_;
  const std::optional<KeyPages>& pages_;
};

class PaddedTiles {
 public:
  PaddedTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
              language::Value* lane_group, const language::MatrixUnit& matrix);
  // Its streams refer to it.
  PaddedTiles(const PaddedTiles&) = delete;
  PaddedTiles& operator=(const PaddedTiles&) = delete;

  // Begins the loads of the first tile; returns what is in flight, which each of the calls below takes and returns.
  language::Values start(const Stops& stops, const TileWalk& walk);
  // K of the first tile stands, as far as this wave wrote it, and this wave has arrived.
  language::Values begin(const Stops& stops, const TileWalk& walk, const language::Values& in_flight);

  void wait() { language::await_others(kernel_); }
  // Called after this wave's last use of LDS before the next wait.
  void arrive();
  language::Values put_values(const Stops& stops, const TileWalk& walk, const language::Values& in_flight);
  language::Values put_keys(const Stops& stops, const TileWalk& walk, const language::Values& in_flight);

  TileStream& keys() { return k_; }
  TileStream& values() { return v_; }

 private:
  // What is in flight: K, V, and of pages the entries of the tile behind the one whose values are loaded last.
  struct InFlight {
    language::Values keys;
    language::Values values;
    language::Value* entries = nullptr;
  };
  InFlight parts_of(const language::Values& in_flight) const;
  static language::Values together(const InFlight& parts);
  language::Values fetch_keys(const Stop& stop, const TileWalk& walk, language::Value* entries);

  language::Kernel& kernel_;
  language::Lds lds_;
  std::optional<KeyPages> pages_;  // before the streams, which ask for it
  std::optional<TilePages> no_tile_pages_;
  language::Value* first_seen_;
  language::Value* any_value_;  // of a key that some row sees
  PaddedRows k_;
  PaddedTransposed v_;
};

}  // namespace wavejit::attention
