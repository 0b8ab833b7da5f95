// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "layers.h"

namespace serving {

namespace {

using Rows = std::vector<Row<double>>;

// One query against all keys so far, which end with its own: causal without a mask.
Row<double> attend(const ModelShape& shape, const Row<double>& query, const Rows& keys, const Rows& values) {
  const int dim = shape.head_dim;
  Row<double> result(query.size());
  for (int head = 0; head < shape.query_heads; ++head) {
    const int kv_head = head / (shape.query_heads / shape.kv_heads);
    std::vector<double> weights;
    for (const Row<double>& key : keys) {
      double score = 0;
      for (int i = 0; i < dim; ++i) score += query[head * dim + i] * key[kv_head * dim + i];
      weights.push_back(score / std::sqrt(static_cast<double>(dim)));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (std::size_t key = 0; key < keys.size(); ++key)
      for (int i = 0; i < dim; ++i) result[head * dim + i] += weights[key] / sum * values[key][kv_head * dim + i];
  }
  return result;
}

double margin_of(const Row<double>& logits) {
  const double best = logits[best_token(logits)];
  double second = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < static_cast<int>(logits.size()); ++i)
    if (i != best_token(logits)) second = std::max(second, logits[i]);
  return best - second;
}

}  // namespace

ReferenceAnswer reference_answer(const Model& model, const Request& request) {
  ReferenceAnswer answer{.tokens = {}, .logits = {}, .smallest_margin = std::numeric_limits<double>::infinity()};
  std::vector<Rows> keys(model.layers.size());
  std::vector<Rows> values(model.layers.size());
  std::vector<int> tokens = request.prompt;
  for (int position = 0; static_cast<int>(answer.tokens.size()) < request.new_tokens; ++position) {
    Row<double> hidden = embed<double>(model, tokens[position], position);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const Layer& layer = model.layers[i];
      const Row<double> x = normalised(hidden);
      keys[i].push_back(multiply(layer.key, x));
      values[i].push_back(multiply(layer.value, x));
      finish_layer(layer, attend(model.shape, multiply(layer.query, x), keys[i], values[i]), hidden);
    }
    if (position + 1 < static_cast<int>(tokens.size())) continue;  // still in the prompt
    answer.logits.push_back(logits_of(model, hidden));
    answer.smallest_margin = std::min(answer.smallest_margin, margin_of(answer.logits.back()));
    answer.tokens.push_back(best_token(answer.logits.back()));
    tokens.push_back(answer.tokens.back());
  }
  return answer;
}

}  // namespace serving
