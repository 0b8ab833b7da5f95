// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_backward on an engine.
#include "runtime/call/call_functions.h"
#include "templates/attention_backward/call/call.h"

namespace wavejit::attention_backward {

struct Calls {
  using Arguments = wavejit_attention_backward_arguments;
  using Call = BackwardCall;

  static Result<BackwardProblem> plan(const runtime::Engine& /*engine*/, const Arguments* arguments) {
    return check(arguments);
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_BACKWARD);

}  // namespace wavejit::attention_backward

extern "C" wavejit_status wavejit_attention_backward(wavejit_engine* engine,
                                                     const wavejit_attention_backward_arguments* arguments,
                                                     ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_backward::Calls>(engine, arguments, stream);
}
