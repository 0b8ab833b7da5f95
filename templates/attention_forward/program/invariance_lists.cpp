// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_lists.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "templates/attention/program/block_lists.h"

namespace wavejit::attention_forward::program {
namespace {

constexpr std::int64_t finest = 64;

class Lists {
 public:
  Lists(const Batch& batch, std::span<const RowsOf> pieces, const ListForm& form)
      : batch_(batch), pieces_(pieces), form_(form) {
    made_.rows = form.finer ? finest : batch.list_rows;
    made_.keys = form.finer ? finest : batch.list_keys;
    made_.heads = form.each_head ? batch.query_heads : batch.list_heads;
    made_.batches = std::ssize(pieces);
    for (const RowsOf& piece : pieces)
      made_.row_blocks = std::max(made_.row_blocks, block_count(batch.sequences[piece.sequence].rows, made_.rows));
  }

  ListedBlocks make() {
    std::vector<BlockList> masked;
    std::vector<BlockList> whole;
    for (const RowsOf& piece : pieces_) {
      for (std::int64_t head = 0; head < made_.heads; ++head) {
        for (std::int64_t block = 0; block < made_.row_blocks; ++block) {
          masked.emplace_back();
          whole.emplace_back();
          fill(piece.sequence, head, block, masked.back(), whole.back());
        }
      }
    }
    // Room that no count reaches.
    const std::int64_t room = form_.noise && form_.counted ? 2 : 0;
    const ListEnds ends = form_.ragged ? ListEnds::starts : form_.counted ? ListEnds::counts : ListEnds::marks;
    made_.masked = arrays_of(masked, ends, room);
    if (form_.whole) made_.whole = arrays_of(whole, ends, room);
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

  void fill(std::size_t sequence, std::int64_t head, std::int64_t block, BlockList& masked, BlockList& whole) const {
    const DrawnSequence& of = batch_.sequences[sequence];
    const std::int64_t row = block * made_.rows;
    if (row >= of.rows) return;
    for (std::int64_t key_block = 0; key_block < block_count(of.keys, made_.keys); ++key_block) {
      const std::int64_t key = key_block * made_.keys;
      if (!is_named(sequence, head, row, key)) continue;
      const bool to_whole = form_.whole && key_block % 2 == 0 && shows_whole(of, row, key);
      if (to_whole) whole.push_back(static_cast<std::int32_t>(key_block));
      if (!to_whole || key_block % 4 == 0) masked.push_back(static_cast<std::int32_t>(key_block));
    }
    if (form_.noise) disturb(masked);
  }

  static void disturb(BlockList& list) {
    std::ranges::reverse(list);
    if (!list.empty()) list.push_back(list.front());
    list.insert(list.begin(), {-1, 0x7FFFFFFF, -5});
    list.push_back(1 << 26);  // whose keys would wrap to key 0
  }

  const Batch& batch_;
  std::span<const RowsOf> pieces_;
  const ListForm& form_;
  ListedBlocks made_;
};

}  // namespace

void give_blocks(wavejit_attention_forward_arguments& call, CallMemory& memory, const Batch& batch,
                 std::span<const RowsOf> pieces, const ListForm& form) {
  Lists(batch, pieces, form).make().give(call.blocks, memory);
}

}  // namespace wavejit::attention_forward::program
