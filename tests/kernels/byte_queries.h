// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels whose Q, K and V are e4m3, launched directly on a simulated GPU, beside float64 on the same numbers. All
// round the tensors, and behind every sequence, stand bytes that are NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/attention_reference.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "wavejit/simgpu.h"

namespace wavejit::tests {

// e4m3 of the Open Compute Project's specification, by its definition.
float value_of_e4m3(std::uint8_t byte);
std::uint8_t nearest_e4m3(float value);

struct ByteCase {
  attention_forward::ForwardKernel spec;
  // q, k and v are numbers of e4m3. `scale` is without the scales of the tensors.
  AttentionInputs inputs;
  float rescale_threshold = 8;
  // Keys of a page, which stand in no order and end in NaN; 0: dense, or packed.
  int page = 0;
  // What becomes of the kernel's IR, for faults. Empty: nothing.
  std::function<std::string(const std::string&)> changed = {};
};
// N(0, spread), rounded.
ByteCase make_byte_case(int batch, int queries, int keys, int heads, int kv_heads, int dim, std::uint64_t seed,
                        double spread = 1);

struct ByteResult {
  std::vector<std::uint8_t> o;  // as the kernel wrote it
  std::vector<float> values;    // the same as numbers, in the order of AttentionAnswer::o
  std::vector<float> lse;
  bool fence_intact = true;
  std::string reports;
  std::string fault;  // what kept it from running
  std::uint32_t spills = 0;
  std::uint32_t private_bytes = 0;
};
ByteResult run_bytes(const ByteCase& which, wavejit_simgpu_schedule schedule, std::uint64_t seed, bool checked);

}  // namespace wavejit::tests
