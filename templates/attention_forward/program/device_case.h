// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem's arrays on the device, and the call.
//
// Around Q, K and V lie rows of NaN, around O and LSE a pattern that must survive; O and LSE themselves hold that
// pattern before a run, so that what a run has written can be told from what it has not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/modifiers.h"
#include "templates/attention/program/rows.h"
#include "templates/attention/program/written_rows.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/call_memory.h"

namespace wavejit::attention_forward::program {

class DeviceCase {
 public:
  static Result<DeviceCase> prepare(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                    const HeadValues& head_values);
  // Leaves Q, K, V and O as the device gives them. The simulated GPU gives zeros that cost nothing until they are
  // touched: where little of a launch runs, its arrays may be larger than the host.
  static Result<DeviceCase> prepare_unfilled(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                             const HeadValues& head_values);

  // Marks O and LSE as not written.
  Result<void> erase();
  // Launches and waits. `engine` may be another one on the same device.
  Result<void> run(wavejit_engine* engine, wavejit_call_report* report);
  Result<void> run(wavejit_engine* engine, const View& view, wavejit_call_report* report);
  // Launches without waiting, in a stream of the caller's and with its workspace: what may be captured.
  struct Workspace {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  Result<void> start(wavejit_engine* engine, const Workspace& workspace, ihipStream_t* stream) const;
  // What the engine would take beside the arrays.
  Result<std::uint64_t> workspace_bytes(wavejit_engine* engine) const;

  // Rows of which anything was written, by LSE if there is one, else by O.
  Result<Rows> written() const;
  Result<WrittenRows> read(const Rows& rows) const;
  // "" or what outside O and LSE was written.
  Result<std::string> broken_fence() const;

 private:
  // All bits set: NaN in fp16, bf16 and fp32, and no result of a finite input.
  static constexpr int mark = 0xFF;
  static constexpr std::uint16_t marked_element = 0xFFFF;
  static constexpr std::uint32_t marked_lse = 0xFFFFFFFF;

  struct Tensor {
    Placement placement;
    std::size_t element = 0;  // bytes
    std::size_t margin = 0;   // bytes on either side
    char* memory = nullptr;

    std::size_t bytes() const { return static_cast<std::size_t>(placement.elements()) * element; }
    // A row of a head.
    char* row(std::int64_t token, std::int64_t head) const {
      return memory + margin + (static_cast<std::size_t>(placement.offset(token, head)) * element);
    }
  };
  // The token of the problem that stands at a place in memory, and its number in its sequence; −1: none that counts.
  struct Token {
    std::int64_t number = 0;
    std::int64_t position = -1;
  };

  DeviceCase(wavejit_engine* engine, const Experiment& problem);
  Tensor make(const Placement& placement, std::size_t element);

  // device_case_call.cpp: the call, and the small arrays that it reads.
  wavejit_tensor described(const Tensor& tensor, std::int32_t dtype) const;
  void describe_tensors();
  void describe_sequences();
  void describe_mask();
  void describe_lists();
  void describe_scales();
  void describe_modifiers(const Inputs& inputs, const HeadValues& head_values);
  std::vector<float> token_scales_of(Operand operand) const;
  wavejit_attention_forward_arguments call_of(const View& view) const;

  // device_case_arrays.cpp: what stands in memory.
  std::vector<Token> tokens_in_memory(Operand operand, std::int64_t places) const;
  Result<void> fill_with_mark(char* memory, std::size_t bytes, int byte = mark) const;
  // `turned`: places from the last to the first.
  Result<void> fill(const Tensor& tensor, Operand operand, const Inputs& inputs, bool turned = false) const;
  template <typename Element>
  Result<void> fill_rows(const Tensor& tensor, Operand operand, const Inputs& inputs, Element nothing,
                         bool turned) const;
  void* filled_bias(const BiasPlacement& bias, const Inputs& inputs);

  Result<void> launch(wavejit_engine* engine, wavejit_attention_forward_arguments call,
                      wavejit_call_report* report) const;
  template <typename Element>
  Result<std::vector<Element>> copy_of(const char* memory, std::size_t bytes) const;
  // A row of O, of which `outputs` is all.
  std::vector<std::uint16_t> row_in(const std::vector<std::uint16_t>& outputs, std::int64_t token,
                                    std::int64_t head) const;

  wavejit_engine* engine_;
  Experiment problem_;
  std::vector<Sequence> sequences_;
  KeySlots slots_;
  CallMemory memory_;
  Tensor q_, k_, v_;
  Tensor second_k_, second_v_;  // without rows where there is no second cache
  Tensor o_;
  Tensor lse_;  // without rows if it is not wanted
  wavejit_attention_forward_arguments call_;
};

}  // namespace wavejit::attention_forward::program
