// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention by its definition, in double, on the stored 16-bit inputs: what --check and sweep compare with. No tiles,
// no online softmax, nothing shared with the kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "templates/attention/program/score_rules.h"
#include "templates/attention/program/vocabulary.h"
#include "tools/all_cores.h"
#include "tools/checker.h"
#include "tools/half.h"
#include "tools/npy.h"

namespace wavejit::attention::program {

// ---- Some rows of one head of one sequence --------------------------------------------------------------------------

struct HeadRows {
  ScoreRules rules;
  std::size_t head_dim_qk = 0;
  std::size_t head_dim_v = 0;
  std::size_t keys = 0;
  std::span<const std::int64_t> rows;  // their numbers in the sequence
  std::span<const float> q;            // [rows][head dim of q and k]
  std::span<const float> k;            // [keys][head dim of q and k]
  std::span<const float> v;            // [keys][head dim of v]
  // What is added to the score of (row number, key); empty: nothing.
  std::function<double(std::int64_t row, std::int64_t key)> bias;
  // What is off by as much as a weight of this share of the row's largest, if it is smaller: so do magnitude, spread
  // and mass count it. 0: all weights as they are.
  double least_weight = 0;
};

// As the checker wants them (tools/checker.h).
struct ExactRows {
  std::vector<double> output;     // [rows][head dim of v]
  std::vector<double> magnitude;  // Σ p·|v| / Σ p, as output
  std::vector<double> spread;     // [rows]; Σ p²·|v|² / (Σ p)²
  std::vector<double> score;      // [rows]; Σ p·|score| / Σ p
  std::vector<double> mass;       // [rows]; Σ p / Σ p where a least weight is said, else 0
  std::vector<double> lse;        // [rows]
  std::vector<double> largest;    // [rows]; finite |score · log2 e|, 0 where scores are modified
};

// On this thread.
ExactRows exact_rows(const HeadRows& head);

// ---- Whole arrays ---------------------------------------------------------------------------------------------------

struct AttentionArrays {
  HalfType type = HalfType::fp16;
  bool output_fp32 = false;  // the result is f32
  const Array* q = nullptr;  // [B, Sq, Hq, D]
  const Array* k = nullptr;  // [B, Sk, Hkv, D]
  const Array* v = nullptr;  // [B, Sk, Hkv, Dv]
  float scale = 1;
  wavejit_masking mask = {};    // NOLINT(readability-redundant-member-init): for initializers
  float softcap = 0;            // 0: none
  const Array* bias = nullptr;  // [B or 1, Hq or 1, Sq, Sk]
  // Initialised, so that designated initialisers may leave them out.
  // NOLINTBEGIN(readability-redundant-member-init)
  std::span<const float> slopes = {};  // [B, Hq] or [Hq]; empty: none
  std::span<const float> sinks = {};   // [Hq]; empty: none
  // [B]; 0: the sequence has no diagonal. Empty: all have the mask's.
  std::span<const std::uint8_t> causal_flags = {};
  // NOLINTEND(readability-redundant-member-init)
};

struct ExactAttention {
  std::vector<double> output;     // [B, Sq, Hq, Dv]
  std::vector<double> magnitude;  // as output
  std::vector<double> spread;     // [B, Hq, Sq], as the next two
  std::vector<double> score;
  std::vector<double> lse;
  std::vector<double> largest;
};

// On all cores.
ExactAttention exact_attention(const AttentionArrays& problem);

// Compares the whole result; `lse` is empty where none was asked for.
Comparison compare_rows(const AttentionArrays& problem, const ExactAttention& exact, std::span<const float> output,
                        std::span<const float> lse);

// What the kernels of a type round to.
StorageFormat storage_format(HalfType type);

}  // namespace wavejit::attention::program
