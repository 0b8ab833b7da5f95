// Attention by its definition, in double, on the stored 16-bit inputs: what --check compares with. No tiles, no online
// softmax, nothing shared with the kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/half.h"
#include "tools/npy.h"

namespace wavejit::tools {

struct AttentionProblem {
  HalfType type = HalfType::fp16;
  const Array* q = nullptr;  // [B, Sq, Hq, D]
  const Array* k = nullptr;  // [B, Sk, Hkv, D]
  const Array* v = nullptr;
  float scale = 1;
  bool causal = false;
};

struct ExactAttention {
  std::vector<double> output;  // [B, Sq, Hq, D]
  std::vector<double> lse;     // [B, Hq, Sq]
  // Σ p·|v| / Σ p, as output: what a relative error of the weights P amounts to.
  std::vector<double> magnitude;
};

// On all cores.
ExactAttention exact_attention(const AttentionProblem& problem);

struct Accuracy {
  double max_error = 0;       // infinite where one of the two is not finite and the other differs
  double rounding_error = 0;  // what rounding the exact answer to the storage type costs by itself
  double bound = 0;
  bool passed = false;
  std::string where;  // the element with the largest error
};

// Every element within 2 × max(rounding error of the exact answer, half an ulp at its largest magnitude) + 1e-5, or
// within what its own roundings can amount to: P rounded to the storage type weighs Σ p·|v|, and O is rounded once
// (docs/canonical-arithmetic.md). `bound` is what the element with the largest error may have.
Accuracy compare_output(const AttentionProblem& problem, const ExactAttention& exact, const std::vector<float>& output);
// LSE: within 1e-4; rows without keys must be −inf.
Accuracy compare_lse(const AttentionProblem& problem, const ExactAttention& exact, const std::vector<float>& lse);

}  // namespace wavejit::tools
