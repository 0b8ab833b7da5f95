// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/block_list_choice.h"

#include <fmt/format.h>

#include <charconv>

namespace wavejit::attention_forward::program {
namespace {

using tools::Answers;

std::int64_t number_of(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

bool has_block_lists(const Answers& answers) {
  const auto found = answers.find("lists");
  return found != answers.end() && found->second == "blocks";
}

tools::Question block_question() {
  return {.name = "block",
          .text = "Rows x keys of a block",
          .usual = "128x128",
          .accepted = {"64x64", "64x128", "128x64", "128x128"},
          .problem = nullptr,
          .is_asked = has_block_lists};
}

BlockListChoice block_lists_of(const Answers& answers, std::int64_t rows, std::int64_t keys) {
  if (!has_block_lists(answers)) return {};
  BlockListChoice lists;
  lists.word = answers.at("block");
  lists.rows = number_of(lists.word);
  lists.keys = number_of(lists.word.substr(lists.word.find('x') + 1));
  lists.row_blocks = (rows + lists.rows - 1) / lists.rows;
  lists.key_blocks = (keys + lists.keys - 1) / lists.keys;
  return lists;
}

std::vector<std::string> cpp_lines_of(const BlockListChoice& lists) {
  return {fmt::format("call.blocks.list_counts = list_counts;    // [{}], one a block of rows", lists.row_blocks),
          fmt::format("call.blocks.list_indices = list_indices;  // [{}][{}], ascending", lists.row_blocks,
                      lists.key_blocks),
          fmt::format("call.blocks.list_row_blocks = {};", lists.row_blocks),
          fmt::format("call.blocks.list_capacity = {};", lists.key_blocks),
          fmt::format("call.blocks.list_rows = {};", lists.rows),
          fmt::format("call.blocks.list_keys = {};", lists.keys),
          "call.blocks.list_batches = call.blocks.list_heads = 1;  // of all alike"};
}

std::string python_of(const BlockListChoice& lists) {
  return fmt::format(
      "wavejit.BlockLists(indices=numpy.tile(numpy.arange({}, dtype=numpy.int32), (1, 1, {}, 1)), rows={}, keys={})",
      lists.key_blocks, lists.row_blocks, lists.rows, lists.keys);
}
std::string python_of_tensors(const BlockListChoice& lists) {
  return fmt::format("wavejit.BlockLists(indices=indices, counts=counts, rows={}, keys={})", lists.rows, lists.keys);
}

std::string block_mask_call(std::string words, const std::string& window, bool with_lse) {
  if (!window.empty()) words += fmt::format(", window_size=({}, 0)", window);
  return fmt::format("out{} = wavejit.torch.block_mask_attention(q, k, v, block_mask{}{})\n", with_lse ? ", lse" : "",
                     words, with_lse ? ", return_lse=True" : "");
}

}  // namespace wavejit::attention_forward::program
