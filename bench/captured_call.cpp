// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "captured_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "hip_abi/hip_functions.h"
#include "tools/device_array.h"

namespace wavejit::bench {
namespace {

using tools::ExitCode;
using tools::failed;
using tools::Result;

}  // namespace

Result<std::size_t> launch_captured(const tools::SimulatedGpu& gpu, wavejit_engine* engine,
                                    attention_forward::program::DeviceCase& call) {
  const auto bytes = call.workspace_bytes(engine);
  if (!bytes) return std::unexpected(bytes.error());
  constexpr std::size_t least = 16;  // a pointer to ask for its device, where the call needs no workspace
  const auto workspace = tools::DeviceArray::allocate(engine, std::max<std::size_t>(*bytes, least));
  if (!workspace) return std::unexpected(workspace.error());

  // The first function that fails, and whatever follows it is left out.
  std::string failure;
  const auto run = [&]<typename Function, typename... Arguments>(Function* /*type*/, const char* name,
                                                                 Arguments... arguments) {
    if (!failure.empty()) return;
    auto* const function = gpu.find<Function*>(name);
    if (function == nullptr)
      failure = fmt::format("the simulated GPU has no {}", name);
    else if (const hip_abi::hipError_t error = function(arguments...); error != hip_abi::hipSuccess)
      failure = fmt::format("{} answers {}", name, static_cast<int>(error));
  };
#define WAVEJIT_RUN(function, ...) run(static_cast<decltype(&hip_abi::function)>(nullptr), #function, __VA_ARGS__)
  hip_abi::hipPointerAttribute_t attributes{};
  hip_abi::hipStream_t stream = nullptr;
  hip_abi::hipGraph_t graph = nullptr;
  hip_abi::hipGraphExec_t executable = nullptr;
  std::size_t nodes = 0;
  WAVEJIT_RUN(hipPointerGetAttributes, &attributes, workspace->data());
  WAVEJIT_RUN(hipSetDevice, attributes.device);
  WAVEJIT_RUN(hipStreamCreateWithFlags, &stream, hip_abi::hipStreamNonBlocking);
  WAVEJIT_RUN(hipStreamBeginCapture, stream, hip_abi::hipStreamCaptureModeGlobal);
  if (failure.empty()) {
    const auto launched = call.start(engine, {.data = workspace->data(), .bytes = *bytes}, stream);
    if (!launched) failure = launched.error().what;
  }
  WAVEJIT_RUN(hipStreamEndCapture, stream, &graph);
  WAVEJIT_RUN(hipGraphGetNodes, graph, nullptr, &nodes);
  WAVEJIT_RUN(hipGraphInstantiate, &executable, graph, nullptr, nullptr, 0);
  WAVEJIT_RUN(hipGraphLaunch, executable, stream);
  WAVEJIT_RUN(hipStreamSynchronize, stream);
  WAVEJIT_RUN(hipGraphExecDestroy, executable);
  WAVEJIT_RUN(hipGraphDestroy, graph);
  WAVEJIT_RUN(hipStreamDestroy, stream);
#undef WAVEJIT_RUN
  if (!failure.empty()) return failed(ExitCode::device, failure);
  return nodes;
}

}  // namespace wavejit::bench
