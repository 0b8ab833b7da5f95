// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of attention_backward on a simulated device, from a descriptor's arrays and back. NaN stands before and
// behind every tensor, and in the workspace; what surrounds the gradients must survive.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "templates/attention_backward/program/device_call.h"

namespace wavejit::tests {

using attention_backward::program::Arrays;

// From a descriptor without its first word.
Arrays backward_arrays(const std::string& words);

struct BackwardOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  // Bits, in the order of the tensors; f32 or the storage type.
  std::vector<std::uint32_t> dq, dk, dv;
  std::vector<float> d_sink;  // [batch][query head]; empty: there are no sinks
  std::vector<std::uint32_t> d_bias;
  bool fence_intact = true;
  std::string reports;
  std::string kernel_spec;
  bool operator==(const BackwardOutput& other) const {
    return dq == other.dq && dk == other.dk && dv == other.dv && d_sink == other.d_sink && d_bias == other.d_bias;
  }
};
// What gradients hold before a call; empty: sums that the arrays have, else noise.
struct Before {
  std::vector<std::uint32_t> dq, dk, dv;
};
using ChangeCall = std::function<void(wavejit_attention_backward_arguments&)>;
BackwardOutput run_backward(wavejit_engine* engine, const Arrays& arrays, const ChangeCall& change = {},
                            const Before& before = {});

// A gradient's element as a number.
double gradient_of(const Arrays& arrays, std::uint32_t bits);

// "" or the first element that roundings do not explain.
std::string wrong_gradients(const Arrays& arrays, const BackwardOutput& output);
// One gradient against its exact values, in dB.
double signal_to_noise(const Arrays& arrays, const attention_backward::program::Gradient& exact,
                       const std::vector<std::uint32_t>& bits);

}  // namespace wavejit::tests
