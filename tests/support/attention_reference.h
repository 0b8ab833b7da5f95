// Attention in float64 by the textbook, for tests: no tiles, no online softmax, nothing shared with any kernel.
#pragma once

#include <cstdint>
#include <vector>

namespace wavejit::tests {

// Row-major float arrays [batch][length][heads][head dim], already rounded to the storage type.
struct AttentionInputs {
  int batch = 1;
  int query_length = 1;
  int key_length = 1;
  int query_heads = 1;
  int kv_heads = 1;
  int head_dim = 64;
  bool causal = false;
  double scale = 1;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
};

struct AttentionAnswer {
  std::vector<double> o;    // [batch][query length][query heads][head dim]
  std::vector<double> lse;  // [batch][query heads][query length]
  // Σ p·|v| / Σ p, as o: what relative errors of the weights P are multiplied with.
  std::vector<double> magnitude;
};

AttentionAnswer attention_reference(const AttentionInputs& inputs);

}  // namespace wavejit::tests
