// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace wavejit::attention_latent::program {
namespace {

constexpr std::array<std::int32_t, 3> no_pages = {0x7FFFFFFF, -1, 0x40000001};

class Placing {
 public:
  Placing(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places)
      : batch_(batch), pieces_(pieces), places_(places) {
    for (const RowsOf& piece : pieces) {
      lengths_.push_back(keys_of(batch, piece));
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
    // The exponents behind all rows are multiples of 16 bytes with an even number of them.
    if (batch_.byte_rows == ByteRows::raised) memory_.inner += memory_.inner % 2;
    const auto rows = static_cast<std::size_t>(memory_.outer * memory_.inner);
    memory_.has.resize(rows);
    const std::uint16_t garbage = attention::program::bits_of(places_.garbage, batch_.type);
    const std::int64_t rope = batch_.dims - batch_.dims_v;
    memory_.k.assign(rows * static_cast<std::size_t>(places_.apart ? batch_.dims_v : batch_.dims), garbage);
    if (places_.apart) memory_.k_rope.assign(rows * static_cast<std::size_t>(rope), garbage);
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) fill(piece);
    return std::move(memory_);
  }

 private:
  void take_lengths() {
    for (const std::int64_t length : lengths_) memory_.lengths.push_back(static_cast<std::int32_t>(length));
  }

  void packed() {
    memory_.starts = {0};
    if (places_.rows_between > 0) take_lengths();
    for (const std::int64_t length : lengths_)
      memory_.starts.push_back(memory_.starts.back() + static_cast<std::int32_t>(length + places_.rows_between));
    memory_.inner = memory_.starts.back();
  }

  void dense(std::int64_t rows) {
    take_lengths();
    memory_.outer = std::ssize(pieces_);
    memory_.inner = std::max<std::int64_t>(rows, 1);
  }

  void in_pages(const Paging& pages) {
    take_lengths();
    constexpr std::int64_t nobodys = 3;
    const auto pages_of = [&](std::int64_t keys) { return (keys + pages.size - 1) / pages.size; };
    std::int64_t count = nobodys;
    for (const std::int64_t length : lengths_) count += pages_of(length);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), 0);
    constexpr std::uint64_t of_pages = 77;
    Draws draws(batch_.number + of_pages);
    draws.shuffle(ids);
    memory_.outer = count;
    memory_.inner = pages.size;

    const std::int64_t columns = pages_of(memory_.longest) + 2;
    std::size_t next = 0;
    if (pages.list) memory_.table_starts = {0};
    for (const std::int64_t length : lengths_) {
      const auto used = static_cast<std::size_t>(pages_of(length));
      first_columns_.push_back(memory_.table.size());
      memory_.table.insert(memory_.table.end(), ids.begin() + static_cast<std::ptrdiff_t>(next),
                           ids.begin() + static_cast<std::ptrdiff_t>(next + used));
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

  // Row of memory that has a key of a piece.
  std::int64_t row_of(std::size_t piece, std::int64_t key) const {
    if (!places_.pages)
      return (places_.rows_behind ? static_cast<std::int64_t>(piece) * memory_.inner : memory_.starts[piece]) + key;
    const std::int64_t size = places_.pages->size;
    return (memory_.table[first_columns_[piece] + static_cast<std::size_t>(key / size)] * size) + (key % size);
  }

  void fill(std::size_t piece) {
    const DrawnSequence& of = batch_.sequences[pieces_[piece].sequence];
    const std::int64_t rope = batch_.dims - batch_.dims_v;
    const std::int64_t length = lengths_[piece];
    for (std::int64_t key = 0; key < length; ++key) {
      const std::int64_t to = row_of(piece, key);
      const std::int64_t of_sequence = places_.reversed ? length - 1 - key : key;
      memory_.has[static_cast<std::size_t>(to)] = {.sequence = pieces_[piece].sequence, .key = of_sequence};
      const auto from = of.k.begin() + (of_sequence * batch_.dims);
      if (places_.apart) {
        std::copy_n(from, batch_.dims_v, memory_.k.begin() + (to * batch_.dims_v));
        std::copy_n(from + batch_.dims_v, rope, memory_.k_rope.begin() + (to * rope));
      } else {
        std::copy_n(from, batch_.dims, memory_.k.begin() + (to * batch_.dims));
      }
    }
  }

  const Batch& batch_;
  std::span<const RowsOf> pieces_;
  const KeyPlaces& places_;
  KeyMemory memory_;
  std::vector<std::int64_t> lengths_;  // a piece
  std::vector<std::size_t> first_columns_;
};

}  // namespace

std::string Paging::text() const {
  return fmt::format("pages of {} key{}{}", size, size == 1 ? "" : "s", list ? ", in one list" : "");
}

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places) {
  return Placing(batch, pieces, places).place();
}

}  // namespace wavejit::attention_latent::program
