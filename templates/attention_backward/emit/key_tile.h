// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of rows of the dK/dV kernel: what a schedule's acts are there. The kernel's walk (key_gradient.cpp) says which
// tile it is, and keeps what lives from one to the next.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "targets/wave_shape.h"
#include "templates/attention_backward/emit/key_place.h"
#include "templates/attention_backward/emit/row_modifiers.h"
#include "templates/attention_backward/emit/row_stream.h"
#include "templates/attention_backward/emit/score_gradient.h"
#include "templates/attention_backward/emit/shared_weights.h"
#include "templates/attention_backward/emit/weave.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {

class KeyTile : protected Weaver {
 protected:
  KeyTile(language::Kernel& kernel, const KeyKernel& spec);

  // The sums of a walk: one makes both, or each has a walk, or a wave.
  void begin_walk(std::size_t walk);
  bool is_giver() const { return spec_.shared && makes_values(makes_); }
  bool is_taker() const { return spec_.shared && makes_keys(makes_); }
  // Products of columns are those of the tile before.
  bool sums_trail() const { return spec_.shared && stream_->buffers() == 1; }

  int dims_of(int gradient) const { return gradient == 0 ? spec_.head_dim_v : spec_.head_dim_qk; }
  int dim_blocks(int gradient) const { return dims_of(gradient) / wave_.rows; }
  // The number of a gradient's first sum, among all sums of the kernel and among those of the walk at hand: dV's (0) or
  // dK's (1).
  std::size_t first_of(int gradient) const;
  std::size_t first_of_walk() const { return first_of(makes_values(makes_) ? 0 : 1); }
  std::size_t sums_of_walk() const;
  std::span<language::Accumulator> sums_of(int gradient, int block);
  bool sums_apart() const;
  int row_blocks() const { return stream_->rows() / wave_.rows; }
  int parts_of_tile() const { return tile_rows / stream_->rows(); }

  // Reads from the first tile, which is on its way into buffer 0, what a tile reads ahead.
  Fragments begin_reading(const Step& first, const language::Values& started);
  // The tile at hand, with its first fragments; returns the next one's.
  Fragments attend(const language::Values& before);
  // −delta of the step in `phase`, which products of gradients start from. The numbers are the wave's own: they are
  // read in front of the barrier.
  void add_next_deltas(language::Strand& strand, int phase);

  language::Kernel& kernel_;
  const KeyKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  KeyPlace place_;                // of the first block
  std::vector<KeyPlace> places_;  // of each
  language::Value* cap_rate_;
  std::vector<RowModifiers> modifiers_;
  std::vector<RowStreamPlan> plans_;  // of each walk
  language::Lds lds_;
  std::deque<RowStream> streams_;
  std::optional<SharedWeights> shared_;
  Ladder ladder_;
  ScoreGradient score_gradient_;
  std::vector<std::vector<language::OperandB>> keys_;  // of each block of keys, a fragment of dims each
  std::vector<std::vector<language::OperandB>> values_;
  // What the walk at hand makes.
  Sums makes_ = Sums::both;
  RowStream* stream_ = nullptr;
  // What is known of the tile at hand.
  struct {
    int buffer = 0;
    Step step = {};
    Step next = {};
    language::Values arrived = {};    // of the step, through registers; where sums trail, of the step before
    language::Values in_flight = {};  // of the next one
    // Where sums trail, what is in flight is of `fetched`, which is behind the next one, received is of the next one;
    // and numbers of rows have registers of their own, of the next one and of `fetched`.
    Step fetched = {};
    language::Values received = {};
    language::Values numbers = {};
    language::Values numbers_in_flight = {};
    int phase = 0;
    language::Value* deltas = nullptr;  // −delta of the step and of the next one, in an accumulator's registers
    language::Value* next_deltas = nullptr;
    language::Values read_deltas = {};
  } at_;
  language::Value* end_ = nullptr;           // of the row tiles, where sums trail
  std::vector<language::Accumulator> sums_;  // dVᵀ, then dKᵀ: of each block of keys, a block of dims each
  std::vector<std::vector<Block>> blocks_;   // of rows, of keys
  std::vector<std::vector<Block>> before_;   // the same of the tile before, where sums trail
  std::vector<language::Values> shifts_;     // of each block of rows, four each

 private:
  language::Strand fetch() override;
  language::Strand receive() override;
  language::Strand receive_columns() override;
  void turn() override;
  void prepare(const schedule::Multiply& multiply) override;
  void begin(const schedule::Multiply& multiply) override;
  void end(const schedule::Multiply& multiply) override;
  std::vector<Multiplication> multiplications(const schedule::Multiply& multiply) override;
  void modify(const schedule::Modify& modify) override;
  language::Strand strand(const schedule::Queue& queue) override;

  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  int fragments_of_block() const { return wave_.rows / wave_.fragment_k(); }
  int next_buffer() const { return (at_.buffer + 1) % stream_->buffers(); }
  int fetched_buffer() const { return (at_.buffer + (is_taker() ? taker_lead : giver_lead)) % stream_->buffers(); }
  const schedule::Schedule& table() const;
  // Whether the step `ahead` steps later is the first of a row tile, for which the numbers of the tile must be loaded.
  bool are_numbers_due(int ahead) const { return (at_.phase + ahead) % parts_of_tile() == 0; }
  // The wave that weighs has time for them while rows are read, the other one while columns are.
  void add_trailing_columns(language::Strand& strand) {
    stream_->add_columns_of_matrices(strand, at_.arrived, 0, at_.phase % 2);
  }

  // `before`: the blocks of the tile before.
  std::vector<Block>& blocks_at(int block, bool before = false) {
    return (before ? before_ : blocks_)[static_cast<std::size_t>(block)];
  }
  static bool is_sum(const schedule::Multiply& multiply);
  int block_of_numbers(int block) const;
  language::Value* minus_delta_of(int block);
  // Quarters of a block's numbers, four rows each.
  std::size_t quarters() const { return static_cast<std::size_t>(wave_.registers()) / 4; }
  static constexpr std::size_t quarters_of_half = 2;
  void read_shifts(int block);
  language::Value* shift(int block, std::size_t keys, int r);
  std::vector<Multiplication> from_rows(attention::TileStream& tile, int block, language::Accumulator Block::* into,
                                        const std::vector<std::vector<language::OperandB>>& operands);
  std::vector<Multiplication> from_columns(attention::TileStream& tile, const schedule::Multiply& multiply,
                                           Rounded Block::* operands, int gradient);
  language::Strand handed_over(const schedule::Queue& queue);
};

}  // namespace wavejit::attention_backward
