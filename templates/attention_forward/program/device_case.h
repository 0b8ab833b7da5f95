// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem's rows on the device, and the call over them, whole or of some rows.
#pragma once

#include <cstdint>
#include <vector>

#include "templates/attention/program/device_rows.h"
#include "templates/attention/program/modifiers.h"
#include "templates/attention_forward/program/vocabulary.h"

namespace wavejit::attention_forward::program {

class DeviceCase : public DeviceRows {
 public:
  static Result<DeviceCase> prepare(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                    const HeadValues& head_values);
  // Without filled rows.
  static Result<DeviceCase> prepare_unfilled(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                             const HeadValues& head_values);

  // Launches and waits. `engine` may be another one on the same device.
  Result<void> run(wavejit_engine* engine, wavejit_call_report* report) { return launch(engine, call_, report); }
  Result<void> run(wavejit_engine* engine, const View& view, wavejit_call_report* report) {
    return launch(engine, call_of(view), report);
  }
  // Launches without waiting, in a stream of the caller's and with its workspace: what may be captured.
  struct Workspace {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  Result<void> start(wavejit_engine* engine, const Workspace& workspace, ihipStream_t* stream) const;
  // What the engine would take beside the arrays.
  Result<std::uint64_t> workspace_bytes(wavejit_engine* engine) const;

 private:
  DeviceCase(wavejit_engine* engine, const Experiment& problem);

  // device_case_call.cpp: the call, and the small arrays that it reads.
  wavejit_tensor described_keys(const DeviceTensor& tensor, std::int32_t dtype, bool of_values) const;
  void describe_tensors();
  void describe_sequences();
  void describe_mask();
  void describe_lists();
  void describe_scales();
  void describe_modifiers(const Inputs& inputs, const HeadValues& head_values);
  std::vector<float> token_scales_of(Operand operand) const;
  wavejit_attention_forward_arguments call_of(const View& view) const;

  static Result<void> launch(wavejit_engine* engine, wavejit_attention_forward_arguments call,
                             wavejit_call_report* report);

  wavejit_attention_forward_arguments call_;
};

}  // namespace wavejit::attention_forward::program
