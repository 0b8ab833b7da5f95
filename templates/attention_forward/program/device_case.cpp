// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A case's life: prepared and run.
#include "templates/attention_forward/program/device_case.h"

#include "tools/empty_call.h"

namespace wavejit::attention_forward::program {

DeviceCase::DeviceCase(wavejit_engine* engine, const Experiment& problem)
    : DeviceRows(engine, problem), call_(empty_call<wavejit_attention_forward_arguments>(WAVEJIT_ATTENTION_FORWARD)) {}

Result<DeviceCase> DeviceCase::prepare_unfilled(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                                const HeadValues& head_values) {
  DeviceCase made(engine, problem);
  made.describe_tensors();
  made.describe_sequences();
  made.describe_mask();
  made.describe_lists();
  made.describe_scales();
  made.describe_modifiers(inputs, head_values);
  if (!made.memory_.good()) return std::unexpected(made.memory_.good().error());
  return made;
}

Result<DeviceCase> DeviceCase::prepare(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                       const HeadValues& head_values) {
  auto made = prepare_unfilled(engine, problem, inputs, head_values);
  if (!made) return made;
  if (auto filled = made->fill(inputs); !filled) return std::unexpected(filled.error());
  return made;
}

Result<void> DeviceCase::launch(wavejit_engine* engine, wavejit_attention_forward_arguments call,
                                wavejit_call_report* report) {
  call.head.report = report;  // this run's, and gone after it
  if (auto launched = checked(wavejit_attention_forward(engine, &call, nullptr)); !launched) return launched;
  return checked(wavejit_device_synchronize(engine));
}

Result<void> DeviceCase::start(wavejit_engine* engine, const Workspace& workspace, ihipStream_t* stream) const {
  wavejit_attention_forward_arguments call = call_;
  call.split.workspace = workspace.data;
  call.split.workspace_bytes = workspace.bytes;
  return checked(wavejit_attention_forward(engine, &call, stream));
}

Result<std::uint64_t> DeviceCase::workspace_bytes(wavejit_engine* engine) const {
  std::size_t bytes = 0;
  if (auto asked = checked(wavejit_call_workspace(engine, &call_.head, &bytes)); !asked)
    return std::unexpected(asked.error());
  return bytes;
}

}  // namespace wavejit::attention_forward::program
