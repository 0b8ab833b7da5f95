// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Latent attention in float64 from its definition, before absorption: keys and values are what the up-projections of a
// head make of the compressed row. It shares nothing with the kernels, which never see a projection.
//
//   k_nope[d] = Σ_j up_k[d][j] · c[j]        score = scale · (q_nope · k_nope + q_rope · k_rope)
//   v[e]      = Σ_j up_v[e][j] · c[j]        o[e]  = Σ softmax(score) · v[e]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "templates/attention/program/score_rules.h"

namespace wavejit::attention_latent::program {

// A matrix by its elements that are not 0: columns are dims of the compressed row.
struct Projection {
  struct Element {
    std::size_t row;
    std::size_t column;
    double factor;
  };
  std::size_t rows = 0;
  std::vector<Element> elements;
};
// The projections of one head. Rows of up_k: nope dims; of up_v: what O is looked at by.
struct Projections {
  std::int64_t latent = 0;
  Projection up_k;
  Projection up_v;
};

struct LatentRow {
  std::span<const double> nope;  // of q, before absorption
  std::span<const double> rope;
};

struct ExactRow {
  std::vector<double> o;           // behind up_v
  std::vector<double> magnitudes;  // Σ p · |v| of each of them
  double lse = 0;
};

// Those of `keys`, each as often as it is named, of `compressed` [key][latent] and `ropes` [key][rope dims].
ExactRow exact_row(const LatentRow& row, const Projections& projections, std::span<const double> compressed,
                   std::span<const double> ropes, std::span<const std::int64_t> keys,
                   const attention::program::ScoreRules& rules);

}  // namespace wavejit::attention_latent::program
