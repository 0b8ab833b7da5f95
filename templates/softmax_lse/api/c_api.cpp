// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of the C ABI that are softmax_lse's.
#include "runtime/call/c_call.h"
#include "templates/softmax_lse/call/call.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam

namespace {

// `ask(call)` of the checked call.
template <typename Ask>
wavejit_status asked(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments, Ask ask) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    const auto problem = wavejit::softmax_lse::check(arguments);
    if (!problem) return std::unexpected(problem.error());
    const Engine& on = *engine->engine;
    wavejit::softmax_lse::SoftmaxCall call(*arguments, *problem, on.target_row(), on.toggles());
    return ask(call);
  });
}

}  // namespace

extern "C" {

wavejit_status wavejit_softmax_lse(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments,
                                   ihipStream_t* stream) {
  return asked(engine, arguments, [&](auto& call) { return engine->engine->run(call, stream); });
}

wavejit_status wavejit_softmax_lse_supported(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments) {
  return asked(engine, arguments, [&](auto& call) { return engine->engine->supports(call); });
}

wavejit_status wavejit_softmax_lse_ready(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments) {
  return asked(engine, arguments, [&](auto& call) { return engine->engine->is_ready(call); });
}

wavejit_status wavejit_softmax_lse_describe(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments,
                                            wavejit_line_callback line, void* context) {
  return asked(engine, arguments, [&](const auto& call) -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    line(context, call.descriptor(wavejit::families::Call::Line::whole).c_str());
    return {};
  });
}

}  // extern "C"
