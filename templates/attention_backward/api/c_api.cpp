// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_backward on an engine.
#include "runtime/call/call_functions.h"
#include "templates/attention_backward/call/call.h"

namespace wavejit::attention_backward {

using runtime::Engine;

struct Calls {
  using Arguments = wavejit_attention_backward_arguments;

  // `ask(call)` of the checked call.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
    const auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    if (auto workspace = check_workspace(*arguments, problem->workspace_bytes()); !workspace)
      return std::unexpected(workspace.error());
    BackwardCall call(*arguments, *problem, engine.toggles());
    return ask(call);
  }

  static Result<std::size_t> workspace(const Engine& engine, const Arguments* arguments) {
    const auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    BackwardCall call(*arguments, *problem, engine.toggles());
    call.workspace = nullptr;  // whoever asks for the size has none yet
    if (auto supported = engine.supports(call); !supported) return std::unexpected(supported.error());
    return problem->workspace_bytes();
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_BACKWARD);

}  // namespace wavejit::attention_backward

extern "C" wavejit_status wavejit_attention_backward(wavejit_engine* engine,
                                                     const wavejit_attention_backward_arguments* arguments,
                                                     ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_backward::Calls>(engine, arguments, stream);
}
