// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What this example is about: a serving engine's attention on wavejit. One object is a rank's part of the key-value
// cache and the one place that calls wavejit_attention_forward.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <wavejit/wavejit.hpp>

#include "half.h"
#include "scheduler.h"

namespace serving {

// The heads of one rank.
struct HeadShape {
  int layers = 0;
  int query_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int longest = 0;
};

// The kernels that such an engine will ask for, as lines for wavejit_prepare and `wavejit prebuild`. Heads, batch and
// lengths change no kernel, except the class of the longest query of a step.
std::vector<std::string> kernel_lines(const HeadShape& shape, const Limits& limits);

class Attention {
 public:
  Attention(wavejit::Engine& engine, const HeadShape& shape, const Limits& limits);

  // Says where each sequence's rows of this step lie, how many keys it has and in which pages: once a step, for all
  // layers.
  void begin_step(const std::vector<Piece>& pieces, const std::vector<Sequence>& sequences);

  // Rows of the step one after the other: queries [rows, query_heads, head_dim], keys and values [rows, kv_heads,
  // head_dim]. Keys and values are appended to the cache; the answer is as large as the queries.
  std::vector<Half> attend(int layer, const std::vector<Half>& queries, const std::vector<Half>& keys,
                           const std::vector<Half>& values);

  // Appends keys and values that were computed elsewhere, as an engine does whose prompts run on other GPUs.
  void fill(int layer, const std::vector<Half>& keys, const std::vector<Half>& values);

  // Flags of the calls from now on, and where they tell what they did (null: nowhere).
  void observe(int flags, wavejit_call_report* report) {
    flags_ = flags;
    report_ = report;
  }

 private:
  wavejit_tensor pages_of_layer(int layer, bool values) const;
  void append(const wavejit_tensor& cache, const std::vector<Half>& rows);

  wavejit::Engine& engine_;
  HeadShape shape_;
  Limits limits_;
  wavejit::DeviceBuffer queries_;             // [tokens_per_step, query_heads, head_dim]
  wavejit::DeviceBuffer answers_;             // the same
  std::vector<wavejit::DeviceBuffer> cache_;  // a layer: [pages, 2, page size, kv_heads, head_dim], K and V in turn
  wavejit::DeviceBuffer block_table_;         // int32 [slots, columns_]: the pages of each slot's sequence
  wavejit::DeviceBuffer query_starts_;        // int32 [slots + 1]: rows of slot s are starts[s] … starts[s + 1] - 1
  wavejit::DeviceBuffer key_lengths_;         // int32 [slots]
  std::vector<Piece> pieces_;
  std::vector<std::vector<int>> pages_;  // of each piece's sequence
  int columns_ = 0;
  int rows_ = 0;
  int longest_piece_ = 0;
  int flags_ = 0;
  wavejit_call_report* report_ = nullptr;
};

}  // namespace serving
