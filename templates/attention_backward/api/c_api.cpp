// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of the C ABI that are attention_backward's.
#include "runtime/call/c_call.h"
#include "templates/attention_backward/call/call.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam

namespace {

// `ask(call)` of the checked call.
template <typename Ask>
wavejit_status asked(wavejit_engine* engine, const wavejit_attention_backward_arguments* arguments, Ask ask) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    const auto problem = wavejit::attention_backward::check(arguments);
    if (!problem) return std::unexpected(problem.error());
    if (auto workspace = wavejit::attention_backward::check_workspace(*arguments, problem->workspace_bytes());
        !workspace)
      return workspace;
    wavejit::attention_backward::BackwardCall call(*arguments, *problem, engine->engine->toggles());
    return ask(call);
  });
}

}  // namespace

extern "C" {

wavejit_status wavejit_attention_backward(wavejit_engine* engine, const wavejit_attention_backward_arguments* arguments,
                                          ihipStream_t* stream) {
  return asked(engine, arguments, [&](auto& call) { return engine->engine->run(call, stream); });
}

wavejit_status wavejit_attention_backward_workspace(wavejit_engine* engine,
                                                    const wavejit_attention_backward_arguments* arguments,
                                                    size_t* bytes) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(bytes, "bytes", "where the number of bytes goes"); !given) return given;
    const auto problem = wavejit::attention_backward::check(arguments);
    if (!problem) return std::unexpected(problem.error());
    const Engine& on = *engine->engine;
    wavejit::attention_backward::BackwardCall call(*arguments, *problem, on.toggles());
    call.workspace = nullptr;  // whoever asks for the size has none yet
    if (auto supported = on.supports(call); !supported) return supported;
    *bytes = problem->workspace_bytes();
    return {};
  });
}

wavejit_status wavejit_attention_backward_supported(wavejit_engine* engine,
                                                    const wavejit_attention_backward_arguments* arguments) {
  return asked(engine, arguments, [&](auto& call) { return engine->engine->supports(call); });
}

wavejit_status wavejit_attention_backward_ready(wavejit_engine* engine,
                                                const wavejit_attention_backward_arguments* arguments) {
  return asked(engine, arguments, [&](auto& call) { return engine->engine->is_ready(call); });
}

wavejit_status wavejit_attention_backward_describe(wavejit_engine* engine,
                                                   const wavejit_attention_backward_arguments* arguments,
                                                   wavejit_line_callback line, void* context) {
  return asked(engine, arguments, [&](const auto& call) -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    line(context, call.descriptor(wavejit::families::Call::Line::whole).c_str());
    return {};
  });
}

}  // extern "C"
