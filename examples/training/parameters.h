// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The weights of a decoder with two layers and grouped heads. Gradients and the optimiser's moments have the same
// shape.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "matrix.h"

namespace training {

struct Shape {
  int vocabulary = 32;
  int hidden = 48;
  int layers = 2;
  int query_heads = 2;
  int kv_heads = 1;  // both query heads read it
  int head_dim = 64;
  int feed_forward = 64;
  int length = 20;  // tokens of a sequence that are read; each is followed by one to tell
};

template <typename Real>
struct Layer {
  Matrix<Real> query;   // [query_heads · head_dim, hidden]
  Matrix<Real> key;     // [kv_heads · head_dim, hidden]
  Matrix<Real> value;   // the same
  Matrix<Real> output;  // [hidden, query_heads · head_dim]
  Matrix<Real> up;      // [feed_forward, hidden]
  Matrix<Real> down;    // [hidden, feed_forward]
};

template <typename Real>
struct Parameters {
  Matrix<Real> tokens;     // [vocabulary, hidden]
  Matrix<Real> positions;  // [length, hidden]
  std::vector<Layer<Real>> layers;
  Matrix<Real> unembedding;  // [vocabulary, hidden]

  explicit Parameters(const Shape& shape)
      : tokens(shape.vocabulary, shape.hidden),
        positions(shape.length, shape.hidden),
        unembedding(shape.vocabulary, shape.hidden) {
    const int queries = shape.query_heads * shape.head_dim;
    const int keys = shape.kv_heads * shape.head_dim;
    for (int i = 0; i < shape.layers; ++i)
      layers.push_back({Matrix<Real>(queries, shape.hidden), Matrix<Real>(keys, shape.hidden),
                        Matrix<Real>(keys, shape.hidden), Matrix<Real>(shape.hidden, queries),
                        Matrix<Real>(shape.feed_forward, shape.hidden),
                        Matrix<Real>(shape.hidden, shape.feed_forward)});
  }

  // All of them, in one order.
  std::vector<Matrix<Real>*> matrices() {
    std::vector<Matrix<Real>*> all = {&tokens, &positions};
    for (Layer<Real>& layer : layers)
      all.insert(all.end(), {&layer.query, &layer.key, &layer.value, &layer.output, &layer.up, &layer.down});
    all.push_back(&unembedding);
    return all;
  }
};

// splitmix64: a counter in, well-mixed bits out. The same numbers on every machine.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  int below(int bound) {
    std::uint64_t x = (state_ += 0x9E3779B97F4A7C15U);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return static_cast<int>((x ^ (x >> 31)) % static_cast<std::uint64_t>(bound));
  }

 private:
  std::uint64_t state_;
};

// Small integers over a power of two, so that float and double begin with the same weights.
template <typename Real>
Parameters<Real> initial_parameters(const Shape& shape, std::uint64_t seed) {
  Numbers numbers(seed);
  Parameters<Real> parameters(shape);
  for (Matrix<Real>* matrix : parameters.matrices())
    for (Real& value : matrix->values) value = static_cast<Real>(numbers.below(129) - 64) / 256;
  return parameters;
}

}  // namespace training
