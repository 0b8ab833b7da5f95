// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of softmax_lse on an engine.
#include "runtime/call/call_functions.h"
#include "templates/softmax_lse/call/call.h"

namespace wavejit::softmax_lse {

using runtime::Engine;

struct Calls {
  using Arguments = wavejit_softmax_lse_arguments;

  // `ask(call)` of the checked call.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
    const auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    SoftmaxCall call(*arguments, *problem, engine.target_row(), engine.toggles());
    return ask(call);
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_SOFTMAX_LSE);

}  // namespace wavejit::softmax_lse

extern "C" wavejit_status wavejit_softmax_lse(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments,
                                              ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::softmax_lse::Calls>(engine, arguments, stream);
}
