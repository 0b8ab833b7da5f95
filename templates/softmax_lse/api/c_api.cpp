// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of softmax_lse on an engine.
#include "runtime/call/call_functions.h"
#include "templates/softmax_lse/call/call.h"

namespace wavejit::softmax_lse {

struct Calls {
  using Arguments = wavejit_softmax_lse_arguments;
  using Call = SoftmaxCall;

  static Result<SoftmaxProblem> plan(const runtime::Engine& /*engine*/, const Arguments* arguments) {
    return check(arguments);
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_SOFTMAX_LSE);

}  // namespace wavejit::softmax_lse

extern "C" wavejit_status wavejit_softmax_lse(wavejit_engine* engine, const wavejit_softmax_lse_arguments* arguments,
                                              ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::softmax_lse::Calls>(engine, arguments, stream);
}
