// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_lists.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace wavejit::attention_forward::program {
namespace {

constexpr std::int64_t finest = 64;

// As a call has them; what it lacks is empty.
struct ListArray {
  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> starts;
  std::int64_t capacity = 0;
};
struct CallLists {
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t row_blocks = 0;
  ListArray masked;
  ListArray whole;
};

std::int64_t blocks_in(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }

class Lists {
 public:
  Lists(const Batch& batch, std::span<const RowsOf> pieces, const ListForm& form)
      : batch_(batch), pieces_(pieces), form_(form) {
    made_.rows = form.finer ? finest : batch.list_rows;
    made_.keys = form.finer ? finest : batch.list_keys;
    made_.heads = form.each_head ? batch.query_heads : batch.list_heads;
    for (const RowsOf& piece : pieces)
      made_.row_blocks = std::max(made_.row_blocks, blocks_in(batch.sequences[piece.sequence].rows, made_.rows));
  }

  CallLists make() {
    std::vector<std::vector<std::int32_t>> masked;
    std::vector<std::vector<std::int32_t>> whole;
    for (const RowsOf& piece : pieces_) {
      for (std::int64_t head = 0; head < made_.heads; ++head) {
        for (std::int64_t block = 0; block < made_.row_blocks; ++block) {
          masked.emplace_back();
          whole.emplace_back();
          fill(piece.sequence, head, block, masked.back(), whole.back());
        }
      }
    }
    made_.masked = array_of(std::move(masked));
    if (form_.whole) made_.whole = array_of(std::move(whole));
    return std::move(made_);
  }

 private:
  std::uint64_t drawn(std::size_t sequence, std::int64_t head, std::int64_t row_block, std::int64_t key_block) const {
    std::uint64_t number = batch_.number;
    for (const std::uint64_t part : {static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(head),
                                     static_cast<std::uint64_t>(row_block), static_cast<std::uint64_t>(key_block)})
      number = Draws(number, part).next();
    return number;
  }

  // `row` and `key`: the first row and key of a block of the form. `head`: the head of the form's lists.
  bool is_named(std::size_t sequence, std::int64_t head, std::int64_t row, std::int64_t key) const {
    if (form_.all) return true;
    const std::int64_t row_block = row / batch_.list_rows;
    const std::int64_t key_block = key / batch_.list_keys;
    const bool named = drawn(sequence, head * batch_.list_heads / made_.heads, row_block, key_block) % 100 <
                       static_cast<std::uint64_t>(batch_.list_percent);
    return form_.other && row_block == 0 && key_block == 0 ? !named : named;
  }

  // Whether the mask shows every key of a block to each of its rows.
  bool shows_whole(const DrawnSequence& of, std::int64_t row, std::int64_t key) const {
    const std::int64_t last_row = std::min(row + made_.rows, of.rows) - 1;
    const std::int64_t last_key = std::min(key + made_.keys, of.keys) - 1;
    const std::int64_t diagonal = of.keys - of.rows;
    if (batch_.causal && last_key > row + diagonal) return false;
    return !batch_.window_left || key >= last_row + diagonal - *batch_.window_left;
  }

  void fill(std::size_t sequence, std::int64_t head, std::int64_t block, std::vector<std::int32_t>& masked,
            std::vector<std::int32_t>& whole) const {
    const DrawnSequence& of = batch_.sequences[sequence];
    const std::int64_t row = block * made_.rows;
    if (row >= of.rows) return;
    for (std::int64_t key_block = 0; key_block < blocks_in(of.keys, made_.keys); ++key_block) {
      const std::int64_t key = key_block * made_.keys;
      if (!is_named(sequence, head, row, key)) continue;
      const bool to_whole = form_.whole && key_block % 2 == 0 && shows_whole(of, row, key);
      if (to_whole) whole.push_back(static_cast<std::int32_t>(key_block));
      if (!to_whole || key_block % 4 == 0) masked.push_back(static_cast<std::int32_t>(key_block));
    }
    if (form_.noise) disturb(masked);
  }

  static void disturb(std::vector<std::int32_t>& list) {
    std::ranges::reverse(list);
    if (!list.empty()) list.push_back(list.front());
    list.insert(list.begin(), {-1, 0x7FFFFFFF, -5});
    list.push_back(1 << 26);  // whose keys would wrap to key 0
  }

  ListArray array_of(std::vector<std::vector<std::int32_t>> lists) const {
    ListArray array;
    if (form_.ragged) {
      array.starts = {0};
      for (const auto& list : lists) {
        array.indices.insert(array.indices.end(), list.begin(), list.end());
        array.starts.push_back(static_cast<std::int32_t>(array.indices.size()));
      }
      if (array.indices.empty()) array.indices.push_back(0);
      array.capacity = std::ssize(array.indices);
      return array;
    }
    const std::int64_t room = form_.noise && form_.counted ? 2 : 0;
    for (const auto& list : lists) array.capacity = std::max(array.capacity, std::ssize(list) + room);
    array.capacity = std::max<std::int64_t>(array.capacity, 1);
    for (auto& list : lists) {
      if (form_.counted) array.counts.push_back(static_cast<std::int32_t>(list.size()));
      // With counts, the entries after the last that counts name block 0, so that a kernel which reads them would see
      // it.
      list.resize(static_cast<std::size_t>(array.capacity), form_.counted ? 0 : -1);
      array.indices.insert(array.indices.end(), list.begin(), list.end());
    }
    return array;
  }

  const Batch& batch_;
  std::span<const RowsOf> pieces_;
  const ListForm& form_;
  CallLists made_;
};

}  // namespace

void give_blocks(wavejit_attention_forward_arguments& call, tools::CallMemory& memory, const Batch& batch,
                 std::span<const RowsOf> pieces, const ListForm& form) {
  const CallLists lists = Lists(batch, pieces, form).make();
  call.blocks.list_indices = memory.in(lists.masked.indices);
  call.blocks.list_counts = memory.in(lists.masked.counts);
  call.blocks.list_starts = memory.in(lists.masked.starts);
  call.blocks.full_indices = memory.in(lists.whole.indices);
  call.blocks.full_counts = memory.in(lists.whole.counts);
  call.blocks.full_starts = memory.in(lists.whole.starts);
  call.blocks.list_capacity = lists.masked.capacity;
  call.blocks.full_capacity = lists.whole.capacity;
  call.blocks.list_rows = static_cast<std::int32_t>(lists.rows);
  call.blocks.list_keys = static_cast<std::int32_t>(lists.keys);
  call.blocks.list_batches = static_cast<std::int32_t>(pieces.size());
  call.blocks.list_heads = static_cast<std::int32_t>(lists.heads);
  call.blocks.list_row_blocks = lists.row_blocks;
}

}  // namespace wavejit::attention_forward::program
