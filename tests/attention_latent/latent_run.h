// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of attention_latent on a simulated device, from a descriptor's arrays and back. NaN stands before and behind
// every tensor, in slots that no sequence names, and in the workspace; what surrounds O and LSE must survive.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "templates/attention_latent/program/device_call.h"

namespace wavejit::tests {

using attention_latent::program::LatentArrays;

// From a descriptor without its first word.
LatentArrays latent_arrays(const std::string& words);

struct LatentOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  std::vector<std::uint16_t> o;    // [token][head][dim]
  std::vector<std::uint32_t> lse;  // bits: [batch][head][row], packed [head][row of all]; empty: none
  bool fence_intact = true;
  std::string reports;
  std::string kernel_spec;
  bool operator==(const LatentOutput& other) const { return o == other.o && lse == other.lse; }
};
using ChangeLatentCall = std::function<void(wavejit_attention_latent_arguments&)>;
LatentOutput run_latent(wavejit_engine* engine, const LatentArrays& arrays, const ChangeLatentCall& change = {});

// O of one row, and its LSE.
struct LatentRowBits {
  std::vector<std::uint16_t> o;
  std::uint32_t lse = 0;
  bool operator==(const LatentRowBits&) const = default;
};
LatentRowBits row_of(const LatentArrays& arrays, const LatentOutput& output, std::int64_t sequence, std::int64_t row,
                     std::int64_t head);

// "" or the first element that roundings do not explain, of every row; of every `step`th.
std::string wrong_latent(const LatentArrays& arrays, const LatentOutput& output, std::int64_t step = 1);

}  // namespace wavejit::tests
