// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of keys in permuted lines (attention/kernel/lds_layout.h), filled by 16-byte LDS DMA: two buffers in turn, of
// bytes up to four. A staged tile is read by rows for the scores, and transposed by the read for O: its columns that
// are V's stand in LDS once. While a tile is worked on, the others are on their way, and from the end of the work one
// more.
//
// Bytes stand in LDS as they came. Who multiplies them widens them, in the shadow of the product before.
//
// Of waves that share rows each multiplies the scores of half a tile, and the other half comes from its neighbour.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "codegen/language/lds.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/stream_lines.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention_latent/emit/key_ring.h"
#include "templates/attention_latent/emit/score_exchange.h"

namespace wavejit::attention_latent {

class LineRing final : public KeyRing {
 public:
  LineRing(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
           const language::MatrixUnit& matrix);
  // Its streams refer to it.
  LineRing(const LineRing&) = delete;
  LineRing& operator=(const LineRing&) = delete;

  int buffers() const override { return 1; }
  language::Values start(const attention::TileWalk& walk, const TakeQuery& take) override;
  bool may_end_unreleased() const override { return true; }
  language::Values first_loads() const override { return first_entries_; }
  language::Values whole(int buffer, language::Value* place, const attention::TileWalk& walk,
                         const language::Values& carried) override;
  language::Values release(int buffer, language::Value* place, const attention::TileWalk& walk,
                           const language::Values& carried) override;
  std::vector<std::function<void()>> fetches(int buffer, language::Value* place, const attention::TileWalk& walk,
                                             const language::Values& carried) override;
  int key_blocks_of_wave() const override;
  std::vector<language::Accumulator> all_scores(std::vector<language::Accumulator> own) override;
  void begin_values(int /*buffer*/) override { latent_.enter_transposed(image_); }
  language::Value* named() const override { return named_; }
  language::OperandA keys(int buffer, int key_block, int dim_block) override;
  language::OperandA values(int buffer, int dim_block, int key_block) override;
  language::OperandA widened(const language::OperandA& read) override;

 private:
  using Transfers = std::vector<std::function<void()>>;
  // Entries of a walk's first tiles of listed keys: asked for as early as their addresses are known.
  static constexpr int entries_ahead = 4;
  static language::Values first_entries(language::Kernel& kernel, const Workgroup& workgroup,
                                        const std::optional<attention::KeyPages>& pages);
  // The rows of the query pass through the last half of the images, before a tile of keys comes there.
  language::Values start_along(const attention::TileWalk& walk, const TakeQuery& take, language::Values query);
  void fetch_query();
  language::Values read_query(int younger);
  language::Values look_up(language::Value* place, const attention::TileWalk& walk) const;
  // The transfers of one of a wave's two lines of a tile.
  Transfers of_line(std::size_t line, language::Value* image, language::Value* place, const attention::TileWalk& walk,
                    std::span<language::Value* const> found);
  // Those that are begun as soon as an image is free, and the others, of the tile behind the one at `place`, which
  // stands in image_.
  Transfers early(language::Value* image, language::Value* place, const attention::TileWalk& walk,
                  std::span<language::Value* const> found);
  Transfers late(language::Value* place, const attention::TileWalk& walk, const language::Values& carried);
  // Where the image `tiles` tiles further begins.
  language::Value* image_behind(language::Value* image, int tiles) const;
  int transfers() const { return latent_.transfers() + (rope_ ? rope_->transfers() : 0); }
  int transfers_of_first_line() const {
    return (latent_.transfers() / 2) + (rope_ && rope_->lines() > 1 ? rope_->transfers() / 2 : 0);
  }
  std::size_t early_count() const;
  language::Value* listed(language::Value* place, const attention::TileWalk& walk) const;
  std::size_t found_values(const language::Values& carried) const;
  // For listed keys: where those of the tile behind the next one stand, as the table has answered since.
  language::Value* resolved(const language::Values& carried) const;
  // Begins up to `most` of the late transfers that have not begun.
  void begin_late(std::size_t most);
  bool is_listed() const { return pages_ && pages_->is_listed(); }

  language::Kernel& kernel_;
  const Workgroup& workgroup_;
  const language::MatrixUnit& matrix_;
  attention::CacheType cache_;
  int rows_;  // of the workgroup
  KeyRingPlan plan_;
  int latent_blocks_;  // of 16 dims
  int rope_blocks_;
  language::Lds lds_;
  ScoreExchange scores_;
  std::optional<attention::KeyPages> pages_;  // before the streams, which ask for it
  std::optional<attention::TilePages> tile_pages_;
  language::Values first_entries_;
  bool shares_rows_;                  // with a neighbour, who multiplies the scores of the other half of a tile
  bool between_products_;             // late transfers are begun
  int images_;                        // tiles that stand in LDS or are on their way there
  std::size_t found_tiles_;           // of this many, from the last of them on, it is carried where they stand
  language::Value* image_ = nullptr;  // where it stands: bytes behind the first tile of LDS, uniform
  language::Value* named_ = nullptr;
  Transfers late_;  // still to be begun, the last one first
  attention::LineStream latent_;
  std::optional<attention::LineStream> rope_;
  std::optional<attention::KeyPages> no_pages_;
  std::optional<attention::TilePages> no_tile_pages_;
  attention::LineStream query_;
  std::optional<attention::LineStream> query_rope_;
};

}  // namespace wavejit::attention_latent
