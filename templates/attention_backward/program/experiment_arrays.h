// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A backward problem as arrays: inputs from the descriptor's seed, o and LSE as an exact forward call would have left
// them, and the exact gradients.
//
// An exact forward call of a large problem takes minutes, and a profile needs none of its numbers. From
// `most_exact_multiplications` on o is made up and LSE estimated. Gradients are defined by whatever o and LSE a call
// gets, so the exact ones are of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention_backward/program/reference.h"

namespace wavejit::attention_backward::program {

// Tensors lie as queries_of and keys_of say (experiment.h), LSE and its gradient as [batch][head][row].
inline constexpr double most_exact_multiplications = 0x1p32;
struct Arrays : attention::program::SequenceArrays {
  attention::program::Experiment experiment;
  bool with_d_lse = false;
  std::vector<std::uint16_t> q, k, v, o, d_o;
  std::vector<float> lse, d_lse;
  std::vector<float> delta;   // given in the place of o; empty: it is not
  std::vector<float> o_fp32;  // the same of o in f32
  std::vector<float> sinks;   // of each query head, in the LSE; empty: none
  std::vector<float> slopes;  // ALiBi; empty: none
  std::vector<float> bias;    // where bias_of (experiment.h) places it, behind its rounding; empty: none
  bool with_d_bias = false;
  bool d_bias_fp32 = false;
  // Bits of enum wavejit_gradient_sums, and the sums of calls before, as dq, dk and dv hold them; empty: none.
  std::uint32_t sums_before = 0;
  std::uint32_t sums_behind = 0;
  std::vector<float> dq_before, dk_before, dv_before;
  bool estimated = false;  // o and LSE: gradients are of these, whoever gave them
  Gradients exact;         // rows where the tensors have them; of sinks [batch][query head]; of the bias as it

  std::uint64_t multiplications() const;
};
// What the words say beside the experiment: d_lse, d_bias and its type, sums of several calls.
void read_words(Arrays& arrays);
// A line whose arrays can be made.
tools::Result<attention::program::Experiment> parse_problem(const std::string& descriptor);
// `with_gradients`: also `exact`. `outputs`: o and LSE of an exact forward call where that takes no minutes, or made up
// whatever the size. What compares bits with bits needs no more.
enum class MadeOutputs : std::uint8_t { exact, estimated };
tools::Result<Arrays> make_arrays(const std::string& descriptor, bool with_gradients = true,
                                  MadeOutputs outputs = MadeOutputs::exact);

// o and LSE as an exact forward call would have left them.
void compute_outputs(Arrays& arrays);
// Gradients from o and LSE as they stand in estimated arrays, else from exact ones.
Gradients exact_gradients(const Arrays& arrays);
// What roundings amount to in `count` elements of a gradient from `first` on.
std::vector<double> bounds_of(const Arrays& arrays, const Gradient& gradient, std::size_t first, std::size_t count);

// The bias as device memory has it: in q's type or in f32.
std::vector<std::byte> bias_bytes(const Arrays& arrays);

// Where LSE of a row stands: [batch][head][row], packed [head][row of all].
std::size_t number_at(const attention::program::Placement& queries, std::int64_t token, std::int64_t head);

}  // namespace wavejit::attention_backward::program
