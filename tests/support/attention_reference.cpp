// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace wavejit::tests {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// One query row among its sequence's.
struct Row {
  int batch;
  int head;
  int in_tensor;  // of the rows of its batch in q
  int diagonal;
  int in_sequence;
};

bool mask_shows(const AttentionInputs& in, const Row& row, int key) {
  const bool causal = in.causal && (in.causal_flags.empty() || in.causal_flags[row.batch] != 0);
  if (causal && key > row.diagonal) return false;
  if (in.local_chunk > 0 && key / in.local_chunk != row.diagonal / in.local_chunk) return false;
  if (!in.window) return true;
  if (in.window_left >= 0 && key < row.diagonal - in.window_left) return false;
  return in.window_right < 0 || key <= row.diagonal + in.window_right;
}

bool sees(const AttentionInputs& in, const Row& row, int key) {
  if (!in.shown.empty()) {
    const std::size_t batch = in.shown_batches > 1 ? row.batch : 0;
    const std::size_t head = in.shown_heads > 1 ? row.head : 0;
    const std::size_t of_row = ((batch * in.shown_heads + head) * in.query_rows()) + row.in_tensor;
    if (in.shown[(of_row * in.key_length) + key] == 0) return false;
  }
  if (!in.lists) return mask_shows(in, row, key);
  const std::size_t list = in.lists->list_of(row.batch, row.head, row.in_sequence, in.query_heads);
  const int block = key / in.lists->keys;
  if (BlockLists::names(in.lists->whole[list], block)) return true;
  return BlockLists::names(in.lists->masked[list], block) && mask_shows(in, row, key);
}

double modified(const AttentionInputs& in, const Row& row, int key, double x) {
  if (in.softcap != 0) x = in.softcap * std::tanh(x / in.softcap);
  if (!in.bias.empty()) {
    const std::size_t batch = in.bias_batches > 1 ? row.batch : 0;
    const std::size_t head = in.bias_heads > 1 ? row.head : 0;
    x += in.bias[((batch * in.bias_heads + head) * in.query_rows() + row.in_tensor) * in.key_length + key];
  }
  if (!in.alibi.empty()) {
    const std::size_t batch = in.alibi.size() > std::size_t(in.query_heads) ? row.batch : 0;
    x -= double(in.alibi[batch * in.query_heads + row.head]) * std::abs(key - row.diagonal);
  }
  return x;
}

// Eight sums side by side, so that none waits for the one before.
double dot(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += double(a[i + lane]) * double(b[i + lane]);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  for (; i < count; ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

// A weight of 0 makes nothing of an infinite score.
double weighted(double p, double score) { return p == 0 ? 0 : p * std::fabs(score); }

}  // namespace

int AttentionInputs::keys(int b) const {
  const int all = packed_keys() ? key_starts[b + 1] - key_starts[b] : key_length;
  return key_lengths.empty() ? all : std::min<int>(all, key_lengths[b]);
}

std::size_t AttentionInputs::row_of_lse(int b, int i, int h) const {
  const int row = packed_queries() ? query_starts[b] + i : i;
  return (std::size_t(packed_queries() ? 0 : b) * query_heads + h) * query_rows() + row;
}

std::size_t AttentionInputs::row_of_output(int b, int i, int h) const {
  return std::size_t(first_query(b) + i) * query_heads + h;
}

std::size_t AttentionInputs::row_of_key(int b, int j, int h) const {
  return std::size_t(first_key(b) + j) * kv_heads + h / (query_heads / kv_heads);
}

std::vector<double> attention_scores(const AttentionInputs& in, int b, int i, int h) {
  const std::size_t d = in.head_dim;
  const int keys = in.keys(b);
  const Row row{.batch = b,
                .head = h,
                .in_tensor = in.packed_queries() ? in.first_query(b) + i : i,
                .diagonal = i + in.prefix.value_or(keys - in.queries(b)),
                .in_sequence = i};
  const float* q = &in.q[in.row_of_output(b, i, h) * d];
  std::vector<double> score(keys, minus_infinity);
  for (int j = 0; j < keys; ++j) {
    if (sees(in, row, j)) score[j] = modified(in, row, j, dot(q, &in.k[in.row_of_key(b, j, h) * d], d) * in.scale);
  }
  return score;
}

AttentionAnswer attention_reference(const AttentionInputs& in) {
  const std::size_t dv = in.value_dim();
  AttentionAnswer out;
  const std::size_t all_rows = std::size_t(in.query_batches()) * in.query_rows();
  out.o.assign(all_rows * in.query_heads * dv, 0.0);
  out.lse.assign(all_rows * in.query_heads, minus_infinity);
  out.magnitude.assign(out.o.size(), 0.0);
  out.spread.assign(out.lse.size(), 0.0);
  out.score.assign(out.lse.size(), 0.0);
  out.largest.assign(out.lse.size(), 0.0);
  const bool modified = in.softcap != 0 || !in.bias.empty() || !in.alibi.empty();
  std::vector<double> sum(dv);
  std::vector<double> magnitude(dv);
  for (int b = 0; b < in.batch; ++b) {
    for (int h = 0; h < in.query_heads; ++h) {
      for (int i = 0; i < in.queries(b); ++i) {
        const std::vector<double> score = attention_scores(in, b, i, h);
        const double sink = in.sink.empty() ? minus_infinity : in.sink[h];
        const double largest = std::ranges::fold_left(score, sink, [](double x, double y) { return std::max(x, y); });
        if (largest == minus_infinity) continue;
        double total = std::exp(sink - largest);
        double scores = weighted(total, sink);
        double squares = 0;
        std::ranges::fill(sum, 0.0);
        std::ranges::fill(magnitude, 0.0);
        for (int j = 0; j < std::ssize(score); ++j) {
          if (score[j] == minus_infinity) continue;
          const double p = std::exp(score[j] - largest);
          total += p;
          scores += weighted(p, score[j]);
          const float* v = &in.v[in.row_of_key(b, j, h) * dv];
          for (std::size_t c = 0; c < dv; ++c) sum[c] += p * double(v[c]);
          for (std::size_t c = 0; c < dv; ++c) magnitude[c] += p * std::fabs(double(v[c]));
          squares += p * p * dot(v, v, dv);
        }
        const std::size_t at = in.row_of_output(b, i, h) * dv;
        const std::size_t at_lse = in.row_of_lse(b, i, h);
        for (std::size_t c = 0; c < dv; ++c) out.o[at + c] = sum[c] / total;
        for (std::size_t c = 0; c < dv; ++c) out.magnitude[at + c] = magnitude[c] / total;
        out.lse[at_lse] = largest + std::log(total);
        out.spread[at_lse] = squares / (total * total);
        out.score[at_lse] = scores / total;
        for (const double x : score)
          if (!modified && std::isfinite(x))
            out.largest[at_lse] = std::max(out.largest[at_lse], std::fabs(x) * std::numbers::log2e);
      }
    }
  }
  return out;
}

}  // namespace wavejit::tests
