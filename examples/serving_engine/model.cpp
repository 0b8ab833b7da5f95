// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.h"

#include <algorithm>
#include <cmath>

namespace serving {

namespace {

// splitmix64: a counter in, well-mixed bits out.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t x = (state_ += 0x9E3779B97F4A7C15U);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }

 private:
  std::uint64_t state_;
};

// Integers from -7 to 7 have a standard deviation of √(56/3) ≈ 4.3: a vector of length 1 an element stays about one.
Matrix make_matrix(Numbers& numbers, int rows, int columns, float gain) {
  Matrix matrix{.rows = rows, .columns = columns, .values = {}};
  matrix.values.resize(static_cast<std::size_t>(rows) * columns);
  const float factor = gain / (4.3F * std::sqrt(static_cast<float>(columns)));
  for (float& value : matrix.values) value = static_cast<float>(numbers.below(15) - 7) * factor;
  return matrix;
}

constexpr int common_tokens = 20;

}  // namespace

Model make_model(const ModelShape& shape, std::uint64_t seed) {
  Numbers numbers(seed);
  const int query_rows = shape.query_heads * shape.head_dim;
  const int kv_rows = shape.kv_heads * shape.head_dim;
  const float embedding = std::sqrt(static_cast<float>(shape.hidden));
  Model model;
  model.shape = shape;
  model.tokens = make_matrix(numbers, shape.vocabulary, shape.hidden, embedding);
  model.positions = make_matrix(numbers, shape.longest, shape.hidden, 0.5F * embedding);
  for (int i = 0; i < shape.layers; ++i) {
    Layer layer;
    layer.query = make_matrix(numbers, query_rows, shape.hidden, 1);
    layer.key = make_matrix(numbers, kv_rows, shape.hidden, 1);
    layer.value = make_matrix(numbers, kv_rows, shape.hidden, 1);
    layer.output = make_matrix(numbers, shape.hidden, query_rows, 1);
    layer.up = make_matrix(numbers, shape.feed_forward, shape.hidden, 1);
    layer.down = make_matrix(numbers, shape.hidden, shape.feed_forward, 1);
    model.layers.push_back(std::move(layer));
  }
  model.unembedding = make_matrix(numbers, shape.vocabulary, shape.hidden, 4);
  return model;
}

std::vector<Request> make_requests(const ModelShape& shape, int count, std::uint64_t seed) {
  Numbers numbers(seed);
  // Long prompts begin alike, as those with the same instructions in front do.
  Numbers common_numbers(~seed);
  std::vector<int> common;
  common.reserve(common_tokens);
  for (int token = 0; token < common_tokens; ++token) common.push_back(common_numbers.below(shape.vocabulary));
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.arrival_step = 2 * i;
    const int length = i % 2 == 0 ? 34 + numbers.below(13) : 1 + numbers.below(12);  // long and short prompts by turns
    for (int token = 0; token < length; ++token) request.prompt.push_back(numbers.below(shape.vocabulary));
    if (i % 2 == 0) std::copy(common.begin(), common.end(), request.prompt.begin());
    request.new_tokens = 5 + numbers.below(6);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace serving
