// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "templates/attention_forward/program/answers.h"

namespace wavejit::attention_forward::program {
namespace {

std::vector<std::string> with_name(std::vector<std::string> words) {
  for (std::string& text : words) text.insert(0, "attention_forward ");
  return words;
}

// Words in front of the head dim, and behind lse.
struct Shape {
  std::string sizes;
  std::string behind;
};

// The published sets, in their order (research notes of the project: test matrices).
std::vector<Shape> published_shapes() {
  struct Squares {  // as many queries as keys
    int batch;
    const char* heads;
    std::vector<int> lengths;
    const char* behind = "";
  };
  const Squares squares[] = {
      {16, "64", {8192}},
      {16, "64/8", {8192}},
      {2, "64", {1024}},
      {8, "64", {128, 256, 512}},
      {1, "64", {128, 256, 384, 512, 1024, 2048, 4096, 8192}},
      {4, "64", {8192}},
      {1, "32", {2048, 4096, 8192}},
      {8, "32", {8192}},
      {16, "16", {8192}},
      {1, "16", {2048, 4096, 8192}},
      {1, "8", {2048, 4096, 8192}},
      {32, "8", {8192}},
      // Split keys.
      {1, "2", {8192, 4096}, " splits=4"},
      {1, "4", {2048}, " splits=4"},
      {1, "4", {8192}, " splits=2"},
      // Video and other long contexts.
      {1, "3", {98144, 147216, 196288, 245360, 294432}, " splits=5"},
      {1, "24", {12268, 18402, 24536}},
      {1, "24", {30670, 36804}, " splits=2"},
      {1, "24", {32768}},
      {1, "32", {32768}},
      // Tails.
      {3, "4", {64, 1, 31, 33}},
      {2, "4", {63, 65, 127, 129}},
      {1, "4", {255, 257, 511, 513}},
  };
  std::vector<Shape> shapes;
  for (const auto& [batch, heads, lengths, behind] : squares)
    for (const int length : lengths)
      shapes.push_back({.sizes = fmt::format("b{0} q{1} k{1} h{2}", batch, length, heads), .behind = behind});
  const Shape others[] = {
      // More keys than queries, and fewer.
      {"b1 q31 k65 h64/8", ""},
      {"b1 q63 k33 h64/8", ""},
      {"b1 q129 k255 h64/8", ""},
      {"b1 q257 k127 h64/8", ""},
      {"b1 q1024 k8192 h64/8", ""},
      {"b1 q8192 k1024 h64/8", ""},
      {"b2 q1024 k1024 h64", " layout=packed q_lengths=1024,1024 k_lengths=1024,1024"},
      {"b2 q8192 k8192 h64/8", " layout=packed q_lengths=1024,8192 k_lengths=1024,8192"},
      {"b6 q8192 k8192 h64/8", " layout=packed q_lengths=1024,8192,3,31,65,127 k_lengths=1024,8192,3,31,65,127"},
      {"b6 q65 k65 h64", " layout=packed q_lengths=1,3,31,33,63,65 k_lengths=1,3,31,33,63,65"},
      {"b2 q8192 k8192 h64/8", " layout=packed q_lengths=1024,8192 k_lengths=8192,1024"},
      {"b4 q65 k65 h64", " layout=packed q_lengths=31,33,63,65 k_lengths=65,63,33,31"},
      {"b4 q257 k257 h64/8", " layout=packed q_lengths=127,129,255,257 k_lengths=257,255,129,127"},
  };
  shapes.insert(shapes.end(), std::begin(others), std::end(others));
  return shapes;
}

}  // namespace

std::vector<std::string> published_list() {
  std::vector<std::string> lines;
  for (const Shape& shape : published_shapes())
    for (const int head_dim : {64, 128})
      for (const char* type : {"bf16", "fp16"})
        // Causal last: the two share their inputs.
        for (const char* mask : {"", " causal"})
          lines.push_back(fmt::format("{} {} d{}{} lse{} seed=123 inputs=uniform", type, shape.sizes, head_dim, mask,
                                      shape.behind));
  lines.insert(
      lines.end(),
      {
          // Lists of keys: heads, pages, lengths, and what counts for nothing.
          "bf16 b2 q1 k300 h16/2 d128 lse top_k=200:mixed",
          "fp16 b1 q3 k130 h12 d64 causal lse top_k=90:heads:mixed",
          "bf16 b2 q2 k400 h48/1 d128 lse layout=paged:16 k_lengths=400,67 top_k=300:mixed",
          "fp16 b2 q4 k90 h10/5 d64 causal lse layout=packed q_lengths=4,1 k_lengths=33,90 top_k=40:mixed",
          "bf16 b1 q1 k1500 h128/2 d64 lse top_k=700 splits=2",
          "bf16 b2 q1 k160 h6/3 d192/128 lse top_k=70:slots:mixed",
          "fp16 b2 q1 k300 h40/2 d64 lse layout=paged:16 top_k=260:slots:mixed second_top_k=90",
          // Bool masks, of sequences and heads, packed too, of few rows, whose keys are split, and biases by tile.
          "bf16 b2 q300 k330 h4/2 d128 lse bool_mask=bh",
          "fp16 b2 q70 k90 h2 d64 causal lse layout=packed q_lengths=70,5 k_lengths=33,90 bool_mask=1 softcap=20",
          "bf16 b2 q9 k1500 h8/2 d128 lse bool_mask=b splits=2",
          "fp16 b2 q5 k1100 h4/2 d64 causal lse layout=packed q_lengths=5,3 k_lengths=1100,70 bool_mask=1",
          "bf16 b2 q300 k330 h4/2 d128 lse bias=b bias_by_tile",
          "fp16 b1 q70 k90 h2 d64 causal lse bias=h bias_type=fp32 bias_by_tile",
          // Q in f32, few rows and many.
          "bf16 b2 q300 k330 h4/2 d128 causal q=fp32 lse",
          "fp16 b1 q2 k1500 h8/2 d64 q=fp32 lse splits=2",
      });
  return with_name(std::move(lines));
}

std::vector<std::string> examined_list() {
  return with_name({
      "bf16 b1 q1 k64 h2 d64",
      "bf16 b2 q1 k300 h16/2 d128 lse",
      "bf16 b1 q1 k700 h8/2 d128 splits=2",
      "bf16 b1 q256 k256 h4/2 d128 causal lse",
      "fp16 b2 q100 k130 h8/2 d64 window=40,17 lse",
      "fp16 b1 q70 k300 h4/2 d128 causal lse softcap=5 bias=bh alibi=h sink",
      "bf16 b3 q300 k330 h4/2 d128 causal lse layout=packed q_lengths=3,300,100 k_lengths=130,330,0",
      "bf16 b1 q300 k330 h4/2 d128 splits=3 lse",
      "bf16 b3 q1 k300 h8/2 d128 lse layout=paged:16 k_lengths=77,300,0",
      "fp16 b2 q70 k200 h4/2 d64 causal lse layout=paged:48:hnd q_lengths=70,3 k_lengths=130,200",
      "bf16 b3 q1 k300 h8/2 d128 lse layout=paged:1 k_lengths=77,300,0",
      "bf16 b3 q1 k300 h8/2 d128 lse layout=paged:16:vectorised k_lengths=77,300,0",
      "fp16 b2 q70 k200 h4/2 d64 causal lse layout=paged:48:vectorised_keys q_lengths=70,3 k_lengths=130,200",
      "fp16 b2 q3 k200 h4/2 d64 causal lse first_keys=180,13",
      "bf16 b1 q200 k1300 h2/1 d64 lse lists=64x64:20",
      "fp16 b1 q300 k700 h4/2 d128 causal lse lists=128x128:30 lists_alike",
      // 8 bits: floats are of one target each.
      "bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=e4m3 cache_scales=h",
      "bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=e4m3_fnuz cache_scales=h",
      "bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=i8 cache_scales=token",
      "bf16 b1 q256 k300 h4/2 d128 causal queries=e4m3 lse",
      "bf16 b1 q130 k200 h4/2 d64 qk=i8 lse",
  });
}

std::vector<std::string> timed_list() {
  return with_name({
      "bf16 b4 q4096 k4096 h32/8 d128",
      "bf16 b4 q4096 k4096 h32/8 d128 causal",
      "fp16 b4 q4096 k4096 h32/8 d128",
      "bf16 b4 q4096 k4096 h32/8 d64",
      "bf16 b1 q16384 k16384 h16/2 d128",
      "bf16 b1 q16384 k16384 h16/2 d128 causal",
      "bf16 b1 q16384 k16384 h16/2 d64 causal",
      "bf16 b4 q4096 k4096 h32/8 d128 causal softcap=30",
      "bf16 b16 q1 k8192 h32/8 d128",
      "bf16 b1 q1 k131072 h64/8 d128 splits=32",
  });
}

}  // namespace wavejit::attention_forward::program
