// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/published_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace wavejit::attention_forward::program {

namespace {

struct Dense {
  int batch, queries, keys, query_heads, kv_heads;
  int splits = 1;
};

struct Packed {
  std::vector<int> queries, keys;
  int query_heads, kv_heads;
};

// The published sets, in their order (research notes of the project: test matrices).
std::vector<Dense> published_dense() {
  std::vector<Dense> shapes = {{16, 8192, 8192, 64, 64}, {16, 8192, 8192, 64, 8}, {2, 1024, 1024, 64, 64}};
  const auto square = [&shapes](int batch, int heads, std::initializer_list<int> lengths, int splits = 1) {
    for (const int length : lengths) shapes.push_back({batch, length, length, heads, heads, splits});
  };
  square(8, 64, {128, 256, 512});
  square(1, 64, {128, 256, 384, 512, 1024, 2048, 4096, 8192});
  square(4, 64, {8192});
  square(1, 32, {2048, 4096, 8192});
  square(8, 32, {8192});
  square(16, 16, {8192});
  square(1, 16, {2048, 4096, 8192});
  square(1, 8, {2048, 4096, 8192});
  square(32, 8, {8192});
  // Split keys.
  square(1, 2, {8192, 4096}, 4);
  square(1, 4, {2048}, 4);
  square(1, 4, {8192}, 2);
  // Video and other long contexts.
  square(1, 3, {98144, 147216, 196288, 245360, 294432}, 5);
  square(1, 24, {12268, 18402, 24536});
  square(1, 24, {30670, 36804}, 2);
  square(1, 24, {32768});
  square(1, 32, {32768});
  // Tails.
  square(3, 4, {64, 1, 31, 33});
  square(2, 4, {63, 65, 127, 129});
  square(1, 4, {255, 257, 511, 513});
  // More keys than queries, and fewer.
  for (const auto& [queries, keys] : {std::pair{31, 65}, {63, 33}, {129, 255}, {257, 127}, {1024, 8192}, {8192, 1024}})
    shapes.push_back({1, queries, keys, 64, 8});
  return shapes;
}

std::vector<Packed> published_packed() {
  const auto self = [](const std::vector<int>& lengths, int query_heads, int kv_heads) {
    return Packed{.queries = lengths, .keys = lengths, .query_heads = query_heads, .kv_heads = kv_heads};
  };
  return {self({1024, 1024}, 64, 64),
          self({1024, 8192}, 64, 8),
          self({1024, 8192, 3, 31, 65, 127}, 64, 8),
          self({1, 3, 31, 33, 63, 65}, 64, 64),
          {.queries = {1024, 8192}, .keys = {8192, 1024}, .query_heads = 64, .kv_heads = 8},
          {.queries = {31, 33, 63, 65}, .keys = {65, 63, 33, 31}, .query_heads = 64, .kv_heads = 64},
          {.queries = {127, 129, 255, 257}, .keys = {257, 255, 129, 127}, .query_heads = 64, .kv_heads = 8}};
}

std::string heads_text(int query_heads, int kv_heads) {
  return query_heads == kv_heads ? fmt::format("h{}", query_heads) : fmt::format("h{}/{}", query_heads, kv_heads);
}

// `sizes` stands before the head dim, `layout` after lse, `splits` at its own place: the canonical order.
struct Words {
  std::string sizes;
  std::string layout;
  std::string splits;
};

std::vector<Words> published_shapes() {
  std::vector<Words> shapes;
  for (const Dense& d : published_dense()) {
    shapes.push_back(
        {.sizes = fmt::format("b{} q{} k{} {}", d.batch, d.queries, d.keys, heads_text(d.query_heads, d.kv_heads)),
         .layout = "",
         .splits = d.splits == 1 ? "" : fmt::format(" splits={}", d.splits)});
  }
  for (const Packed& p : published_packed()) {
    shapes.push_back({.sizes = fmt::format("b{} q{} k{} {}", p.queries.size(), std::ranges::max(p.queries),
                                           std::ranges::max(p.keys), heads_text(p.query_heads, p.kv_heads)),
                      .layout = fmt::format(" layout=packed q_lengths={} k_lengths={}", fmt::join(p.queries, ","),
                                            fmt::join(p.keys, ",")),
                      .splits = ""});
  }
  return shapes;
}

}  // namespace

std::vector<std::string> published_list() {
  std::vector<std::string> lines;
  for (const Words& shape : published_shapes()) {
    for (const int head_dim : {64, 128}) {
      for (const char* type : {"bf16", "fp16"}) {
        // Causal last: the two share their inputs.
        for (const char* mask : {"", " causal"}) {
          lines.push_back(fmt::format("attention_forward {} {} d{}{} lse{}{} seed=123 inputs=uniform", type,
                                      shape.sizes, head_dim, mask, shape.layout, shape.splits));
        }
      }
    }
  }
  // Lists of keys: heads, pages, lengths, and what counts for nothing.
  for (const char* words :
       {"bf16 b2 q1 k300 h16/2 d128 lse top_k=200:mixed", "fp16 b1 q3 k130 h12 d64 causal lse top_k=90:heads:mixed",
        "bf16 b2 q2 k400 h48/1 d128 lse layout=paged:16 k_lengths=400,67 top_k=300:mixed",
        "fp16 b2 q4 k90 h10/5 d64 causal lse layout=packed q_lengths=4,1 k_lengths=33,90 top_k=40:mixed",
        "bf16 b1 q1 k1500 h128/2 d64 lse top_k=700 splits=2", "bf16 b2 q1 k160 h6/3 d192/128 lse top_k=70:slots:mixed",
        "fp16 b2 q1 k300 h40/2 d64 lse layout=paged:16 top_k=260:slots:mixed second_top_k=90"})
    lines.push_back(fmt::format("attention_forward {}", words));
  // Bool masks, of sequences and heads, packed too, of few rows, whose keys are split, and biases by tile.
  for (const char* words :
       {"bf16 b2 q300 k330 h4/2 d128 lse bool_mask=bh",
        "fp16 b2 q70 k90 h2 d64 causal lse layout=packed q_lengths=70,5 k_lengths=33,90 bool_mask=1 softcap=20",
        "bf16 b2 q9 k1500 h8/2 d128 lse bool_mask=b splits=2",
        "fp16 b2 q5 k1100 h4/2 d64 causal lse layout=packed q_lengths=5,3 k_lengths=1100,70 bool_mask=1",
        "bf16 b2 q300 k330 h4/2 d128 lse bias=b bias_by_tile",
        "fp16 b1 q70 k90 h2 d64 causal lse bias=h bias_type=fp32 bias_by_tile"})
    lines.push_back(fmt::format("attention_forward {}", words));
  // Q in f32, few rows and many.
  for (const char* words :
       {"bf16 b2 q300 k330 h4/2 d128 causal q=fp32 lse", "fp16 b1 q2 k1500 h8/2 d64 q=fp32 lse splits=2"})
    lines.push_back(fmt::format("attention_forward {}", words));
  return lines;
}

}  // namespace wavejit::attention_forward::program
