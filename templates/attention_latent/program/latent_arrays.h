// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem of latent attention as arrays, from the descriptor's seed: compressed rows, ropes, and queries before and
// after absorption.
//
// Absorption is exact here, so that the answer is one of the arrays that kernels read and of those that they never see:
// an up-projection of keys has one power of two in each column, and queries before it few bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/key_lists.h"
#include "templates/attention_latent/program/reference.h"

namespace wavejit::attention_latent::program {

inline constexpr std::int64_t nope_dims = 128;

struct LatentArrays : attention::program::SequenceArrays {
  attention::program::Experiment experiment;
  bool apart = false;
  // As device memory has them. Together: all columns in q and k; apart: V's there, and the others in the ropes'. What
  // no sequence names (slots of pages, keys behind key_lengths) is NaN.
  std::vector<std::uint16_t> q, q_rope, k, k_rope;
  std::vector<std::uint16_t> second_k;  // of second lists: k's slots in the opposite order
  // For a cache of 8 bits what memory has in place of k, k_rope and second_k, which are then the same values widened;
  // and their scales, for all keys or a sequence each; empty: 1.
  std::vector<std::uint8_t> k_bytes, k_rope_bytes, second_k_bytes;
  std::vector<float> k_scales;
  // Columns of V that have a scale, where k_bytes and second_k_bytes have rows with scales (kernel/spec.h): 128, or 64.
  int row_scales = 0;
  bool has_least_exponents = false;  // of the first two of each row of 64: 2^-127 and 2^-126
  std::vector<float> sinks;
  std::vector<std::int32_t> table;
  std::vector<std::int32_t> table_starts;  // empty: the table has a row a sequence
  std::int64_t pages = 0;
  std::int64_t table_columns = 0;
  attention::program::KeyLists lists;
  attention::program::KeyLists second_lists;

  // Before absorption: queries [token][head][nope dims], and rope.
  std::vector<double> nope;
  std::vector<double> q_ropes;
  // Keys by sequence, [key][dims].
  std::vector<std::vector<double>> compressed;
  std::vector<std::vector<double>> ropes;

  // Columns of a row of k in memory.
  std::int64_t key_columns() const {
    constexpr std::int64_t scaled_row_bytes = 656;
    constexpr std::int64_t exponents_row_bytes = 584;
    if (row_scales != 0) return row_scales == 64 ? exponents_row_bytes : scaled_row_bytes;
    return apart ? latent() : latent() + rope();
  }
  // Elements from one page (or sequence) of `keys` keys to the next: strides are multiples of 16.
  std::int64_t key_stride(std::int64_t keys) const { return ((key_columns() * keys) + 15) / 16 * 16; }
  std::int64_t latent() const { return experiment.head_dim_v; }
  std::int64_t rope() const { return experiment.head_dim_qk - experiment.head_dim_v; }
};

// `with_exact`: also what the exact rows are made of.
// What a descriptor says.
tools::Result<attention::program::Experiment> parse_experiment(const std::string& descriptor);

tools::Result<LatentArrays> make_latent_arrays(const std::string& descriptor, bool with_exact = true,
                                               bool least_exponents = false);

// The same pages as one list (CSR): what rows of the table have behind a sequence's last page is gone.
LatentArrays with_page_list(LatentArrays arrays);

// The same call over a cache in the queries' type: each value is its byte's, times the sequence's scale.
LatentArrays widened(LatentArrays arrays);

// A head's. `through_up_v`: O behind its up-projection of values, of 128 dims; else as kernels leave it, by the
// identity.
Projections projections_of(const LatentArrays& arrays, std::int64_t head, bool through_up_v);

// Row `row` of sequence `sequence`.
ExactRow exact_row_of(const LatentArrays& arrays, std::int64_t sequence, std::int64_t head, std::int64_t row,
                      bool through_up_v = false);

// The largest errors that roundings can cause: in each element of O, and in LSE.
std::vector<double> bounds_of(const LatentArrays& arrays, const ExactRow& exact);
inline constexpr double lse_bound = 2e-4;

}  // namespace wavejit::attention_latent::program
