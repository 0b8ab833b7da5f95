// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention in float64 by the textbook, for tests: no tiles, no online softmax, nothing shared with any kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "support/block_lists.h"

namespace wavejit::tests {

// Row-major float arrays [batch][length][heads][head dim], already rounded to the storage type. Packed queries (keys):
// [1][all rows][heads][head dim], and query_length (key_length) is the longest sequence's.
struct AttentionInputs {
  int batch = 1;
  int query_length = 1;
  int key_length = 1;
  int query_heads = 1;
  int kv_heads = 1;
  int head_dim = 64;   // of q and k
  int head_dim_v = 0;  // of v and o; 0: the same
  bool causal = false;
  double scale = 1;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;

  // NOLINTBEGIN(readability-redundant-member-init): with them, a case names only what it has
  // Keys from diagonal − left to diagonal + right; −1: no limit.
  bool window = false;
  int window_left = -1;
  int window_right = -1;
  int local_chunk = 0;                          // with causal: keys of the row's own chunk of this many positions
  std::vector<std::uint8_t> causal_flags = {};  // [batch], or empty: sequences whose flag is 0 are not causal
  std::optional<int> prefix = {};  // the key at which row 0 stands; none: the last row stands at the last key

  std::vector<std::int32_t> query_starts = {};  // [batch + 1], or empty: dense
  std::vector<std::int32_t> key_starts = {};
  std::vector<std::int32_t> key_lengths = {};  // [batch], or empty: all keys count

  double softcap = 0;
  std::vector<float> bias = {};  // [bias_batches][bias_heads][rows of q in a batch][key_length], rounded as q is
  int bias_batches = 1;
  int bias_heads = 1;
  // A bool mask, as the bias lies: rows see the keys whose byte is not 0. Empty: none.
  std::vector<std::uint8_t> shown = {};
  int shown_batches = 1;
  int shown_heads = 1;
  std::vector<float> alibi = {};  // [1 or batch][query heads]
  std::vector<float> sink = {};   // [query heads]
  std::optional<BlockLists> lists = {};
  // NOLINTEND(readability-redundant-member-init)

  bool packed_queries() const { return !query_starts.empty(); }
  bool packed_keys() const { return !key_starts.empty(); }
  // Rows of the tensors' length dimension, and how many batches they have.
  int query_rows() const { return packed_queries() ? query_starts.back() : query_length; }
  int key_rows() const { return packed_keys() ? key_starts.back() : key_length; }
  int query_batches() const { return packed_queries() ? 1 : batch; }
  int key_batches() const { return packed_keys() ? 1 : batch; }

  int value_dim() const { return head_dim_v != 0 ? head_dim_v : head_dim; }

  // The first row of sequence b among all rows of all batches, and how many it has.
  int first_query(int b) const { return packed_queries() ? query_starts[b] : b * query_length; }
  int queries(int b) const { return packed_queries() ? query_starts[b + 1] - query_starts[b] : query_length; }
  int first_key(int b) const { return packed_keys() ? key_starts[b] : b * key_length; }
  int keys(int b) const;

  // Where row i (key j) of sequence b stands for query head h, among all rows of O (of K), and in LSE.
  std::size_t row_of_output(int b, int i, int h) const;
  std::size_t row_of_lse(int b, int i, int h) const;
  std::size_t row_of_key(int b, int j, int h) const;
};

struct AttentionAnswer {
  std::vector<double> o;    // as q, with the head dim of v
  std::vector<double> lse;  // [query batches][query heads][query rows]
  // Σ p·|v| / Σ p, as o: what relative errors of the weights P are multiplied with.
  std::vector<double> magnitude;
  std::vector<double> spread;  // Σ p²·|v|² / (Σ p)², as lse
  std::vector<double> score;   // Σ p·|score| / Σ p, as lse
  // Finite |score · log2 e| of the keys that a row sees, as lse; 0 where scores are modified.
  std::vector<double> largest;
};

// What the softmax of one row sees of each key: −∞ where it is hidden.
std::vector<double> attention_scores(const AttentionInputs& inputs, int sequence, int row, int head);

AttentionAnswer attention_reference(const AttentionInputs& inputs);

}  // namespace wavejit::tests
