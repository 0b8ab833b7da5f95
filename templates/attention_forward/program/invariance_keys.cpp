// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_keys.h"

#include <algorithm>

#include "templates/attention/program/row_layout.h"

namespace wavejit::attention_forward::program {
namespace {

// Between K and V: what a tile reads beyond the end of one is not the other.
constexpr std::int64_t rows_between = 64;

// K or V of pieces, in a block of memory whose element `begin` is its first one.
class Side {
 public:
  Side(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places, bool of_values)
      : batch_(batch), pieces_(pieces), places_(places), of_values_(of_values) {}

  void place(KeyMemory& memory, wavejit_tensor& tensor, std::size_t begin) const {
    const Paging pages = places_.pages.value_or(Paging());
    const RowLayout layout(order_of_pages(pages.layout, pages.heads_first, of_values_),
                           {memory.outer, std::max<std::int64_t>(memory.inner, 1), batch_.kv_heads, batch_.dim});
    tensor = layout.tensor(nullptr, type_of(batch_.type));
    if (pages.in_turn) tensor.strides[0] *= 2;
    std::vector<std::int64_t> dims(static_cast<std::size_t>(batch_.dim));  // behind the first one of their row
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
      dims[dim] = layout.place_of({0, 0, 0, static_cast<std::int64_t>(dim)});
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      for (std::int64_t key = 0; key < length(pieces_[piece]); ++key) {
        if (is_garbage(pieces_[piece], key)) continue;
        const KeySlot at = memory.slot(piece, key);
        for (std::int64_t head = 0; head < batch_.kv_heads; ++head)
          fill(pieces_[piece], key, head, dims,
               memory.elements.data() + begin + (at.outer * tensor.strides[0]) + layout.place_of({0, at.row, head, 0}));
      }
    }
  }

  std::int64_t length(const RowsOf& piece) const { return keys_of(batch_, piece) + places_.keys_in_front; }

 private:
  bool is_garbage(const RowsOf& piece, std::int64_t key) const {
    if (of_values_ && places_.last_value && key == length(piece) - 1) return true;
    if (places_.rows_between == 0 || !batch_.window_left) return false;
    // Hidden from all rows of the piece.
    const DrawnSequence& of = batch_.sequences[piece.sequence];
    return key < of.keys - of.rows + piece.begin - *batch_.window_left;
  }
  void fill(const RowsOf& piece, std::int64_t key, std::int64_t head, const std::vector<std::int64_t>& dims,
            std::uint16_t* to) const {
    const DrawnSequence& of = batch_.sequences[piece.sequence];
    const std::vector<std::uint16_t>& values = of_values_ ? of.v : of.k;
    const std::int64_t row = (((key - places_.keys_in_front) * batch_.kv_heads) + head) * batch_.dim;
    // Zeros in front: values of hidden keys of a tile must be finite (docs/canonical-arithmetic.md).
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
      to[dims[dim]] = row < 0 ? std::uint16_t{0} : values[static_cast<std::size_t>(row) + dim];
  }

  const Batch& batch_;
  std::span<const RowsOf> pieces_;
  const KeyPlaces& places_;
  bool of_values_;
};

}  // namespace

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places) {
  const Side keys(batch, pieces, places, false);
  std::vector<std::int64_t> lengths;
  for (const RowsOf& piece : pieces) lengths.push_back(keys.length(piece));
  KeyMemory memory = {placed_keys(lengths, places, batch.number)};
  const bool in_turn = places.pages && places.pages->in_turn;
  const std::int64_t row = batch.kv_heads * batch.dim;
  const std::int64_t of_outer = std::max<std::int64_t>(memory.inner, 1) * row;
  const std::int64_t of_side = (memory.outer * of_outer) + (in_turn ? 0 : rows_between * row);
  memory.page_layout = places.pages.value_or(Paging()).layout;
  memory.first_v = static_cast<std::size_t>(in_turn ? of_outer : of_side);
  memory.elements.assign(static_cast<std::size_t>(2 * of_side), bits_of(places.garbage, batch.type));
  keys.place(memory, memory.k, 0);
  Side(batch, pieces, places, true).place(memory, memory.v, memory.first_v);
  return memory;
}

}  // namespace wavejit::attention_forward::program
