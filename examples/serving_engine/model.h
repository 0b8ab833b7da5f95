// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The decoder that is served: two layers with grouped heads, small enough to read, its weights made from a seed.
#pragma once

#include <cstdint>
#include <vector>

namespace serving {

struct ModelShape {
  int vocabulary = 64;
  int hidden = 64;
  int layers = 2;
  int query_heads = 8;
  int kv_heads = 4;  // query head h reads kv head h / 2
  int head_dim = 64;
  int feed_forward = 128;
  int longest = 96;  // tokens of a sequence, prompt and answer
};

// Row-major.
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;

  const float* row(int index) const { return values.data() + static_cast<std::size_t>(index) * columns; }
};

struct Layer {
  Matrix query;   // [query_heads · head_dim, hidden]
  Matrix key;     // [kv_heads · head_dim, hidden]
  Matrix value;   // the same
  Matrix output;  // [hidden, query_heads · head_dim]
  Matrix up;      // [feed_forward, hidden]
  Matrix down;    // [hidden, feed_forward]
};

struct Model {
  ModelShape shape;
  Matrix tokens;     // [vocabulary, hidden]
  Matrix positions;  // [longest, hidden]
  std::vector<Layer> layers;
  Matrix unembedding;  // [vocabulary, hidden]
};

// Weights are small integers times one factor a matrix: the same on every machine.
Model make_model(const ModelShape& shape, std::uint64_t seed);

// What is asked of the engine. Requests arrive while others are served.
struct Request {
  int arrival_step = 0;
  std::vector<int> prompt;
  int new_tokens = 0;
};

std::vector<Request> make_requests(const ModelShape& shape, int count, std::uint64_t seed);

}  // namespace serving
