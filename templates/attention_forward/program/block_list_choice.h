// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit choose` asks and writes of lists of key blocks: one for each block of rows, the same of all heads and
// sequences, which names all blocks until its caller says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program {

bool has_block_lists(const tools::Answers& answers);
// Asked after the question that decides has_block_lists.
tools::Question block_question();

struct BlockListChoice {
  std::string word;  // of a descriptor: "64x128"; empty: none
  std::int64_t row_blocks = 0;
  std::int64_t key_blocks = 0;
  std::int64_t rows = 0;  // of a block
  std::int64_t keys = 0;
};
BlockListChoice block_lists_of(const tools::Answers& answers, std::int64_t rows, std::int64_t keys);

// Assignments to `call`, and their parameters' text.
std::vector<std::string> cpp_lines_of(const BlockListChoice& lists);
inline constexpr const char* block_list_parameters =
    ", const std::int32_t* list_counts, const std::int32_t* list_indices";
// A wavejit.BlockLists of numpy arrays, or of the tensors `indices` and `counts`.
std::string python_of(const BlockListChoice& lists);
std::string python_of_tensors(const BlockListChoice& lists);
// PyTorch's call with a BlockMask, of sequences of one length. `words`: ", causal=True"; `window`: keys, or empty.
std::string block_mask_call(std::string words, const std::string& window, bool with_lse);

}  // namespace wavejit::attention_forward::program
