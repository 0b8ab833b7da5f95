// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the dK/dV kernel walks: the rows of one head after the other, Q and dO and two numbers of each row, on their way
// into LDS.
//
//   targets with transpose reads   two buffers: while one is read, LDS DMA fills the other. Three where two waves that
//                                  share keys are a tile apart
//   others                         rows and columns have an image each; the next rows wait in registers until
//                                  everybody has read the image that they go to
//
// The numbers come through registers in both cases, and each wave keeps its own: nobody waits for another's.
#pragma once

#include "codegen/language/strand.h"
#include "templates/attention_backward/emit/key_place.h"
#include "templates/attention_backward/emit/wide_tile.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {

// The rows of one head that a workgroup takes at a time, all uniform: a row tile, or half of it.
struct Step {
  language::Value* tile;
  language::Value* head;  // of the group
  language::Value* part;  // of the tile
};

// Where in LDS a walk that makes `sums` has them.
struct RowStreamPlan {
  static constexpr int numbers_bytes = 2 * tile_rows * 4;  // of a tile: shifts, then −delta

  int rows = 0;   // of a step
  int waves = 0;  // of a workgroup
  // Which numbers of a row the walk takes.
  bool shifts = true;
  bool deltas = true;
  // And which matrix its waves bring. Of two that share keys each brings one: an address less to make.
  bool brings_q = true;
  bool brings_d_o = true;
  WideTilePlan q;
  WideTilePlan d_o;

  int numbers_byte() const { return q.total_bytes() + d_o.total_bytes(); }
  int numbers_region() const { return q.regions() + d_o.regions(); }
  int numbers_of_wave() const { return q.buffers() * numbers_bytes; }
  int total_bytes() const { return numbers_byte() + (waves * numbers_of_wave()); }
  int regions() const { return numbers_region() + q.buffers(); }
  std::size_t numbers() const { return (shifts ? 1U : 0U) + (deltas ? 1U : 0U); }
};
// `sums`: the sums of a wave that shares keys. LDS is laid out in the same way for both.
RowStreamPlan plan_row_stream(const targets::Target& target, const KeyKernel& spec, Sums sums);

class RowStream {
 public:
  RowStream(language::Kernel& kernel, const KeyKernel& spec, const language::MatrixUnit& matrix, const KeyPlace& place,
            const language::Lds& lds, const RowStreamPlan& plan);

  int rows() const { return plan_.rows; }  // of a step
  int buffers() const { return plan_.q.buffers(); }
  attention::TileStream& queries() { return queries_; }
  attention::TileStream& output_gradients() { return output_gradients_; }

  // The step behind it: part, then head, then tile.
  Step behind(const Step& step) const;
  language::Value* first_row_of(const Step& step) const;
  language::Value* head_of(const Step& step) const;

  // Sends the step's rows on their way into `buffer`, piece by piece. What passes registers is in `in_flight` then.
  void add_fetch(language::Strand& strand, int buffer, const Step& step, language::Values& in_flight);
  language::Values fetch(int buffer, const Step& step);
  // The numbers of what was fetched into LDS; and what passes registers: its rows, its columns.
  void add_rows(language::Strand& strand, int buffer, const Step& step, const language::Values& in_flight);
  void add_columns(language::Strand& strand, const language::Values& in_flight);
  // The same in parts: the numbers, of a whole row tile; the matrices, which stand in `in_flight` from `first` on.
  void add_fetch_of_numbers(language::Strand& strand, const Step& step, language::Values& in_flight);
  void add_fetch_of_matrices(language::Strand& strand, int buffer, const Step& step, language::Values& in_flight);
  // `end`: rows of this tile and of those behind it weigh nothing, too.
  void add_numbers(language::Strand& strand, int buffer, const Step& step, const language::Values& in_flight,
                   language::Value* end = nullptr);
  void add_rows_of_matrices(language::Strand& strand, const language::Values& in_flight, std::size_t first);
  void add_columns_of_matrices(language::Strand& strand, const language::Values& in_flight, std::size_t first,
                               int image = 0);
  // Where there are two images of columns, what is read from here on.
  void read_columns_from(int image);
  std::size_t numbers() const { return plan_.numbers(); }
  // What was received may be read by everybody, and what has been read is free.
  void turn() const;

  enum class Number : std::uint8_t { shift, minus_delta };
  // The numbers of the rows of registers 4 · quarter … + 3 of a block, the same in all lanes of a group.
  language::Value* four_numbers(Number number, int buffer, int block, int quarter) const;

 private:
  language::Kernel& kernel_;
  const KeyKernel& spec_;
  const language::MatrixUnit& matrix_;
  const KeyPlace& place_;
  const language::Lds& lds_;
  RowStreamPlan plan_;
  std::size_t in_flight_of_q() const { return plan_.brings_q ? queries_.in_flight() : 0; }

  WideTile queries_;
  WideTile output_gradients_;
  language::Value* numbers_read_ = nullptr;  // per lane group
};

}  // namespace wavejit::attention_backward
