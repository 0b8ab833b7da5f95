// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call of a problem's arrays that stand in device memory.
#pragma once

#include <string>
#include <vector>

#include "templates/attention_backward/program/experiment_arrays.h"
#include "tools/call_memory.h"

namespace wavejit::attention_backward::program {

// Device memory of each array, in the order of Arrays' fields; null: there is none.
struct DevicePointers {
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
  void* o = nullptr;
  void* d_o = nullptr;
  void* lse = nullptr;
  void* d_lse = nullptr;
  void* delta = nullptr;
  void* sinks = nullptr;
  void* slopes = nullptr;
  void* bias = nullptr;
  void* query_starts = nullptr;
  void* key_starts = nullptr;
  void* key_lengths = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  void* d_sink = nullptr;
  void* d_bias = nullptr;
};
wavejit_attention_backward_arguments call_of(const Arrays& arrays, const DevicePointers& memory);

// A call of dense tensors in device memory that nobody has filled: what a clock needs.
class UnfilledCall {
 public:
  static tools::Result<UnfilledCall> prepare(wavejit_engine* engine, const std::string& descriptor);
  tools::Result<void> run(wavejit_engine* engine, wavejit_call_report* report);

 private:
  explicit UnfilledCall(wavejit_engine* engine) : memory_(engine) {}

  tools::CallMemory memory_;
  wavejit_attention_backward_arguments call_{};
};

}  // namespace wavejit::attention_backward::program
