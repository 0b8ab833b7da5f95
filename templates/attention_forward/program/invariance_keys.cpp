// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace wavejit::attention_forward::program {
namespace {

constexpr std::array<std::int32_t, 3> no_pages = {0x7FFFFFFF, -1, 0x40000001};
// Between K and V: what a tile reads beyond the end of one is not the other.
constexpr std::int64_t rows_between = 64;
// Elements of a vectorised page that stand together.
constexpr std::int64_t unit_elements = 8;

// What a key's number in its piece becomes: an outer index of the tensors and a row of it.
struct Slot {
  std::int64_t outer = 0;
  std::int64_t row = 0;
};

class Placing {
 public:
  Placing(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places)
      : batch_(batch),
        pieces_(pieces),
        places_(places),
        garbage_(attention::program::bits_of(places.garbage, batch.type)) {
    for (const RowsOf& piece : pieces) {
      lengths_.push_back(keys_of(batch, piece) + places.keys_in_front);
      memory_.longest = std::max(memory_.longest, lengths_.back());
    }
  }

  KeyMemory place() {
    if (places_.pages)
      in_pages(*places_.pages);
    else if (places_.rows_behind)
      dense(memory_.longest + *places_.rows_behind);
    else
      packed();
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) fill(piece);
    return std::move(memory_);
  }

 private:
  void make(std::int64_t outer, std::int64_t rows, const Paging& pages) {
    rows = std::max<std::int64_t>(rows, 1);
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

  void packed() {
    memory_.starts = {0};
    if (places_.rows_between > 0) take_lengths();
    for (const std::int64_t length : lengths_) {
      firsts_.push_back({.outer = 0, .row = memory_.starts.back()});
      memory_.starts.push_back(memory_.starts.back() + static_cast<std::int32_t>(length + places_.rows_between));
    }
    make(1, memory_.starts.back(), {});
  }

  void dense(std::int64_t rows) {
    if (!places_.left_padding) take_lengths();
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      const std::int64_t first = places_.left_padding ? rows - lengths_[i] : 0;
      firsts_.push_back({.outer = static_cast<std::int64_t>(i), .row = first});
      if (places_.left_padding) memory_.first_keys.push_back(static_cast<std::int32_t>(first));
    }
    make(static_cast<std::int64_t>(lengths_.size()), rows, {});
  }

  void in_pages(const Paging& pages) {
    take_lengths();
    page_size_ = pages.size;
    Draws draws(batch_.number + 77);
    std::int64_t most_slots = 0;
    constexpr std::int64_t nobodys = 3;
    std::int64_t count = nobodys;
    for (const std::int64_t length : lengths_) {
      firsts_.push_back({.outer = 0, .row = places_.left_padding ? draws.below(3 * pages.size + 20) : 0});
      if (places_.left_padding) memory_.first_keys.push_back(static_cast<std::int32_t>(firsts_.back().row));
      most_slots = std::max(most_slots, firsts_.back().row + length);
      count += pages_of(firsts_.back().row + length);
    }
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), 0);
    for (std::size_t i = ids.size() - 1; i > 0; --i)
      std::swap(ids[i], ids[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(i) + 1))]);
    make(count, pages.size, pages);

    const std::int64_t columns = pages_of(most_slots) + 2;
    std::size_t next = 0;
    if (pages.list) memory_.table_starts = {0};
    for (std::size_t piece = 0; piece < lengths_.size(); ++piece) {
      const auto used = static_cast<std::size_t>(pages_of(firsts_[piece].row + lengths_[piece]));
      first_columns_.push_back(memory_.table.size());
      memory_.table.insert(memory_.table.end(), &ids[next], &ids[next + used]);
      next += used;
      if (pages.list)
        memory_.table_starts.push_back(static_cast<std::int32_t>(memory_.table.size()));
      else
        for (std::size_t i = used; std::cmp_less(i, columns + 1); ++i)
          memory_.table.push_back(no_pages[i % no_pages.size()]);
    }
    memory_.table_columns = pages.list ? std::ssize(memory_.table) : columns;
    memory_.table_row_stride = pages.list ? 0 : columns + 1;
  }

  void take_lengths() {
    for (const std::int64_t length : lengths_) memory_.lengths.push_back(static_cast<std::int32_t>(length));
  }
  std::int64_t pages_of(std::int64_t keys) const { return (keys + page_size_ - 1) / page_size_; }

  Slot slot(std::size_t piece, std::int64_t key) const {
    if (page_size_ == 0) return {.outer = firsts_[piece].outer, .row = firsts_[piece].row + key};
    const std::int64_t slot = firsts_[piece].row + key;
    const std::size_t column = first_columns_[piece] + static_cast<std::size_t>(slot / page_size_);
    return {.outer = memory_.table[column], .row = slot % page_size_};
  }

  // Where an element stands behind the first one of its page and head.
  std::int64_t in_head(std::int64_t row, std::int64_t dim, bool is_k) const {
    if (memory_.page_layout == WAVEJIT_PAGES_OF_ROWS) return row * memory_.k.strides[1] + dim;
    const std::int64_t unit = unit_elements;
    if (is_k) return (dim / unit * page_size_ + row) * unit + dim % unit;
    if (memory_.page_layout == WAVEJIT_PAGES_VECTORISED) return dim * page_size_ + row;
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
      const Slot at = slot(piece, key);
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
  std::vector<Slot> firsts_;           // of a piece; in pages the slot, whatever the page
  std::vector<std::size_t> first_columns_;
  std::int64_t page_size_ = 0;
};

}  // namespace

std::string Paging::text() const {
  const char* order = layout == WAVEJIT_PAGES_VECTORISED        ? ", vectorised"
                      : layout == WAVEJIT_PAGES_VECTORISED_KEYS ? ", vectorised by keys"
                      : heads_first                             ? ", heads first"
                                                                : "";
  return fmt::format("pages of {} keys{}{}{}", size, order, in_turn ? ", K and V in turn" : "",
                     list ? ", in one list" : "");
}

std::int64_t keys_of(const Batch& batch, const RowsOf& piece) {
  const DrawnSequence& of = batch.sequences[piece.sequence];
  if (!batch.causal) return of.keys;
  return std::max<std::int64_t>(of.keys - of.rows + piece.end, 0);
}

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places) {
  return Placing(batch, pieces, places).place();
}

}  // namespace wavejit::attention_forward::program
