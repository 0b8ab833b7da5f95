// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of attention_merge on a simulated device. What lies around and between the tensors' elements is noise, and
// must still be there behind the call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/attention_run.h"

namespace wavejit::tests {

// Numbers of one part: [batch][token][head][dim] as the parts' type has them, and [batch][token][head].
struct MergePart {
  std::vector<float> o;
  std::vector<float> lse;
};

struct MergeCase {
  wavejit_dtype type = WAVEJIT_BF16;  // of the parts
  wavejit_dtype out = WAVEJIT_BF16;
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t heads = 1;
  std::int64_t dims = 64;
  std::vector<MergePart> parts = {};
  // How many parts each tensor of them holds; empty: one each.
  std::vector<std::int64_t> stacks = {};
  bool heads_outside = false;  // [heads, tokens, dim] of a batch, with gaps
  bool lse_by_token = false;   // LSE [tokens, heads], not [heads, tokens]
  bool lse = true;             // of the result
  int in_place = -1;           // the result stands where this tensor of parts does

  std::int64_t rows() const { return batch * tokens * heads; }
};

// Parts of normal numbers and of LSE some powers of e apart; with `empty` some rows of each saw no key, and their O is
// NaN.
MergeCase filled(MergeCase which, std::size_t count, std::uint64_t seed, bool empty = false);

struct MergeOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  std::vector<std::uint32_t> o;  // bits of elements, [batch][token][head][dim]
  std::vector<float> lse;        // [batch][token][head]
  bool rest_intact = true;
  std::string reports;
  std::string kernel_spec;

  float value(std::size_t at, wavejit_dtype type) const;
};
MergeOutput run_merge(wavejit_engine* engine, const MergeCase& which);

// "" or the first element that float64 does not bear out: of f32 arithmetic and one rounding to the result's type.
std::string difference_from_exact(const MergeCase& which, const MergeOutput& output);

}  // namespace wavejit::tests
