// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_keys.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace wavejit::attention_forward::program {
namespace {

// Between K and V: what a tile reads beyond the end of one is not the other.
constexpr std::int64_t rows_between = 64;
// Elements of a vectorised page that stand together.
constexpr std::int64_t unit_elements = 8;

class Placing {
 public:
  Placing(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places)
      : batch_(batch),
        pieces_(pieces),
        places_(places),
        garbage_(attention::program::bits_of(places.garbage, batch.type)) {
    for (const RowsOf& piece : pieces) lengths_.push_back(keys_of(batch, piece) + places.keys_in_front);
    static_cast<attention::program::PlacedKeys&>(memory_) =
        attention::program::placed_keys(lengths_, places, batch.number);
  }

  KeyMemory place() {
    make(memory_.outer, std::max<std::int64_t>(memory_.inner, 1), places_.pages.value_or(Paging()));
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) fill(piece);
    return std::move(memory_);
  }

 private:
  void make(std::int64_t outer, std::int64_t rows, const Paging& pages) {
    const std::int64_t of_outer = rows * batch_.kv_heads * batch_.dim;
    memory_.k = wavejit_dense_tensor(nullptr, batch_.type == tools::HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16, outer,
                                     rows, batch_.kv_heads, batch_.dim);
    if (pages.heads_first) {
      memory_.k.strides[1] = batch_.dim;
      memory_.k.strides[2] = rows * batch_.dim;
    }
    if (pages.in_turn) memory_.k.strides[0] = 2 * of_outer;
    memory_.page_layout = pages.layout;
    if (pages.layout != WAVEJIT_PAGES_OF_ROWS) memory_.k.strides[2] = rows * batch_.dim;
    memory_.v = memory_.k;
    if (pages.layout != WAVEJIT_PAGES_OF_ROWS) {
      memory_.k.strides[1] = unit_elements;
      memory_.v.strides[1] = 1;
      memory_.v.strides[3] = pages.layout == WAVEJIT_PAGES_VECTORISED ? rows : unit_elements;
    }
    const std::int64_t between = pages.in_turn ? 0 : rows_between * batch_.kv_heads * batch_.dim;
    memory_.first_v = static_cast<std::size_t>(pages.in_turn ? of_outer : outer * of_outer + between);
    memory_.elements.assign(static_cast<std::size_t>(2 * (outer * of_outer + between)), garbage_);
  }

  // Where an element stands behind the first one of its page and head.
  std::int64_t in_head(std::int64_t row, std::int64_t dim, bool is_k) const {
    if (memory_.page_layout == WAVEJIT_PAGES_OF_ROWS) return row * memory_.k.strides[1] + dim;
    const std::int64_t unit = unit_elements;
    if (is_k) return (dim / unit * memory_.page_size + row) * unit + dim % unit;
    if (memory_.page_layout == WAVEJIT_PAGES_VECTORISED) return dim * memory_.page_size + row;
    return (row / unit * batch_.dim + dim) * unit + row % unit;
  }

  // Keys before this one are hidden from all rows of a piece.
  std::int64_t first_seen(std::size_t piece) const {
    if (!batch_.window_left) return 0;
    const RowsOf& rows = pieces_[piece];
    const DrawnSequence& of = batch_.sequences[rows.sequence];
    return std::max<std::int64_t>(of.keys - of.rows + rows.begin - *batch_.window_left, 0);
  }

  bool is_garbage(std::size_t piece, std::int64_t key, bool is_k) const {
    if (!is_k && places_.last_value && key == lengths_[piece] - 1) return true;
    return places_.rows_between > 0 && key < first_seen(piece);
  }

  void fill(std::size_t piece) {
    const DrawnSequence& of = batch_.sequences[pieces_[piece].sequence];
    for (std::int64_t key = 0; key < lengths_[piece]; ++key) {
      const attention::program::KeySlot at = memory_.slot(piece, key);
      for (std::int64_t head = 0; head < batch_.kv_heads; ++head) {
        const std::int64_t to = at.outer * memory_.k.strides[0] + head * memory_.k.strides[2];
        const std::int64_t from = ((key - places_.keys_in_front) * batch_.kv_heads + head) * batch_.dim;
        for (const auto& [first, values, is_k] :
             {std::tuple{memory_.first_k, &of.k, true}, {memory_.first_v, &of.v, false}}) {
          if (is_garbage(piece, key, is_k)) continue;
          auto* elements = memory_.elements.data() + first + to;
          // Zeros in front: values of hidden keys of a tile must be finite (docs/canonical-arithmetic.md).
          for (std::int64_t dim = 0; dim < batch_.dim; ++dim)
            elements[in_head(at.row, dim, is_k)] =
                from < 0 ? std::uint16_t{0} : (*values)[static_cast<std::size_t>(from + dim)];
        }
      }
    }
  }

  const Batch& batch_;
  std::span<const RowsOf> pieces_;
  const KeyPlaces& places_;
  std::uint16_t garbage_;
  KeyMemory memory_;
  std::vector<std::int64_t> lengths_;  // a piece
};

}  // namespace

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places) {
  return Placing(batch, pieces, places).place();
}

}  // namespace wavejit::attention_forward::program
