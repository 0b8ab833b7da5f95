// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of softmax_lse on a simulated device, from float scores and back. Rows lie apart; between and around them
// scores are NaN, and weights and LSE a pattern that must survive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "support/bits_of.h"
#include "templates/softmax_lse/kernel/spec.h"

namespace wavejit::tests {

struct SoftmaxCase {
  softmax_lse::DataType type = softmax_lse::DataType::fp32;
  std::optional<softmax_lse::DataType> weights = softmax_lse::DataType::fp32;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t rows = 1;
  std::int64_t keys = 1;
  std::vector<float> scores = {};  // [batch][heads][rows][keys], numbers of the type
  float scale = 1;
  bool causal = false;
  std::optional<std::pair<std::int32_t, std::int32_t>> window = std::nullopt;
  std::optional<std::int64_t> prefix = std::nullopt;
  std::vector<std::int32_t> key_lengths = {};
  std::int64_t gap = 8;   // elements between rows
  std::int64_t lead = 8;  // before the first

  std::size_t count() const { return static_cast<std::size_t>(batch * heads * rows); }
  // The keys that a row sees.
  std::pair<std::int64_t, std::int64_t> seen(std::int64_t of_batch, std::int64_t row) const;
};

// Normal numbers with this spread, rounded to the type.
SoftmaxCase softmax_case(softmax_lse::DataType type, softmax_lse::DataType weights, std::int64_t rows,
                         std::int64_t keys, std::uint64_t seed, double spread = 3, std::int64_t batch = 1,
                         std::int64_t heads = 1);

struct SoftmaxOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  std::vector<std::uint32_t> weights;  // bits, [rows of all][keys]; empty: none
  std::vector<float> lse;
  bool fence_intact = true;
  std::string reports;
  std::string kernel_spec;
  // The bits of what was written.
  bool operator==(const SoftmaxOutput& other) const {
    return weights == other.weights && bits_of(lse) == bits_of(other.lse);
  }
};
SoftmaxOutput run_softmax(wavejit_engine* engine, const SoftmaxCase& which);

// The number that bits of a type stand for.
double number_of(softmax_lse::DataType type, std::uint32_t bits);

// "" or the first weight or LSE that is too far from float64.
std::string wrong_softmax(const SoftmaxCase& which, const SoftmaxOutput& output);

}  // namespace wavejit::tests
