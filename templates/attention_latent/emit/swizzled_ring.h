// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of keys where nothing transposes on the way out of LDS, and 64 keys of the columns that are V's fill it: one
// buffer, and the next tile in registers. As soon as a part of a tile has gone from there into LDS, the same part of
// the next one is asked for, the second half of it between products: memory is never without work.
//
//   V's columns      row by row in LDS. Scores read 16 bytes a lane; O reads dwords, two dims of one key, and a byte
//                    permutation makes two fragments of eight of them
//   behind them      (the rope) never in LDS: fragments as scores take them, from memory into registers
//
// Of waves that share rows each multiplies the scores of half a tile, and the other half comes from its neighbour. LDS
// has no room for them: they pass where V's columns stand that each wave has read for O before.
//
// Where LDS has room for two tiles and for scores (key_ring_plan), a tile goes from registers into one image while the
// other is worked on, in the shadow of the products of scores, and one barrier a tile is enough. Registers then have
// the tile behind it, and what is asked for is one tile further away. Which image is which, lanes' addresses say, which
// change by xor.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "codegen/language/lds.h"
#include "templates/attention/emit/streams_swizzled.h"
#include "templates/attention_latent/emit/key_ring.h"
#include "templates/attention_latent/emit/score_exchange.h"

namespace wavejit::attention_latent {

class SwizzledRing final : public KeyRing {
 public:
  SwizzledRing(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
               const language::MatrixUnit& matrix);
  // Its stream refers to it.
  SwizzledRing(const SwizzledRing&) = delete;
  SwizzledRing& operator=(const SwizzledRing&) = delete;

  int buffers() const override { return 1; }
  language::Values start(const attention::TileWalk& walk, const TakeQuery& take) override;
  language::Values whole(int buffer, language::Value* place, const attention::TileWalk& walk,
                         const language::Values& carried) override;
  language::Values release(int buffer, language::Value* place, const attention::TileWalk& walk,
                           const language::Values& carried) override;
  std::vector<std::function<void()>> fetches(int buffer, language::Value* place, const attention::TileWalk& walk,
                                             const language::Values& carried) override;
  std::vector<std::function<void()>> fetches_behind_scores(language::Value* place, const attention::TileWalk& walk,
                                                           const language::Values& carried) override;
  int key_blocks_of_wave() const override { return 1; }
  std::vector<language::Accumulator> all_scores(std::vector<language::Accumulator> own) override;
  language::Value* named() const override { return named_; }
  language::OperandA keys(int buffer, int key_block, int dim_block) override;
  language::OperandA values(int buffer, int dim_block, int key_block) override;
  int slots_of_values() const override;

 private:
  // A tile on its way: the thread's part of V's columns, the lane's fragments of those behind them.
  std::vector<attention::SwizzledStream::Load> latent_loads(language::Value* place, const attention::TileWalk& walk,
                                                            language::Value* entries);
  std::vector<attention::SwizzledStream::Load> rope_loads(language::Value* tile, language::Value* entries) const;
  std::vector<attention::SwizzledStream::Load> next_rope_loads(language::Value* place, const attention::TileWalk& walk,
                                                               const language::Values& carried) const;
  language::Value* entries_of(language::Value* place, const attention::TileWalk& walk) const;
  bool is_listed() const { return pages_ && pages_->is_listed(); }
  // For looked-up keys: those of a tile, and of the next one; for listed keys the list's of the one behind, too.
  int entry_values() const { return is_listed() ? 3 : pages_ ? 2 : 0; }
  // The entries of the tile behind the one at `place`, which is the next one.
  language::Values entries_behind(language::Value* place, const attention::TileWalk& walk,
                                  language::Value* listed) const;
  attention::SwizzledStream::Load scale_load(language::Value* tile, const attention::TilePages::Place& in_page,
                                             language::Value* entries) const;
  // Where loads are long runs of rows: one scale a lane, of any of the wave's rows.
  attention::SwizzledStream::Load scattered_scale_load(language::Value* tile,
                                                       const attention::TilePages::Place& in_page,
                                                       language::Value* entries) const;
  language::Strand write_with_scattered_scales(const language::Values& loaded);
  // The same with two images.
  language::Values start_ahead(const attention::TileWalk& walk, const TakeQuery& take, const language::Values& query);
  language::Values whole_ahead(language::Value* place, const attention::TileWalk& walk,
                               const language::Values& carried);
  // Where the lane's reads and writes begin, as they are carried; of the tile behind this one.
  language::Values starts() const;
  language::Values starts_behind() const;
  static constexpr std::size_t start_count = attention::SwizzledRows::start_count + 4;
  void set_starts(const language::Values& carried);
  // Carried of looked-up keys.
  std::ptrdiff_t entries_ahead() const { return !pages_ ? 0 : is_listed() ? 4 : 3; }
  attention::SwizzledStream::Load exponent_load(language::Value* tile, const attention::TilePages::Place& in_page,
                                                language::Value* entries) const;
  language::Strand write_latent(const language::Values& loaded);
  bool has_two_images() const { return plan_.buffers == 2; }
  int latent_values() const { return latent_.loads() + (has_row_scales_ ? 1 : 0); }
  bool rope_is_narrow() const { return cache_ != attention::CacheType::as_queries && !has_row_scales_; }
  int rope_blocks() const;
  // Eight dwords of a lane: two dims of eight keys, of a pair of blocks of dims.
  language::Values read_values(int pair, int key_block) const;
  language::Values kept_or_read(int pair, int key_block) const;
  bool stands_in_the_way(int pair, int key_block) const;

  language::Kernel& kernel_;
  const Workgroup& workgroup_;
  const language::MatrixUnit& matrix_;
  int latent_blocks_;  // of 16 dims
  int rope_dims_;
  int pitch_;  // bytes of a row in LDS
  int pairs_;  // of blocks of dims, of the wave's share
  KeyRingPlan plan_;
  language::Lds lds_;
  ScoreExchange scores_;
  attention::Slice rope_slice_;
  attention::Slice latent_slice_;
  bool has_row_scales_;
  bool has_exponents_;
  int scales_at_;                             // of a row in memory, bytes
  int latent_bytes_;                          // up to behind them
  std::optional<attention::KeyPages> pages_;  // before the stream, which asks for it
  std::optional<attention::TilePages> tile_pages_;
  attention::CacheType cache_;
  attention::SwizzledRows latent_;
  std::array<language::Value*, 4> value_starts_{};  // per lane: of the keys 4h … 4h + 3 of a block
  // Values of the tile that is worked on.
  language::Values rope_;
  language::Value* named_ = nullptr;
  // The next tile's; with two images what goes into the other one, and what is of the tile behind it.
  language::Strand writes_;
  std::vector<attention::SwizzledStream::Load> next_loads_;
  language::Values next_;  // of rows with scales, those first
  std::vector<attention::SwizzledStream::Load> next_rope_loads_;
  language::Values next_rope_;
  // The last dwords that `values` read, of a pair of blocks.
  int read_pair_ = -1;
  int read_keys_ = -1;
  language::Values read_;
  language::Values read_ahead_;  // of the pair behind it
  // What was read before scores took its place, by pair and block of 16 keys.
  std::map<std::pair<int, int>, language::Values> kept_;
};

}  // namespace wavejit::attention_latent
