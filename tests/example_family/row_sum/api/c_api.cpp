// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of row_sum on an engine.
#include "runtime/call/call_functions.h"
#include "tests/example_family/row_sum/call/call.h"

namespace wavejit::row_sum {

struct Calls {
  using Arguments = wavejit_row_sum_arguments;
  using Call = RowSumCall;

  static families::Result<RowSumProblem> plan(const runtime::Engine& /*engine*/, const Arguments* arguments) {
    return check(arguments);
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ROW_SUM);

}  // namespace wavejit::row_sum

extern "C" wavejit_status wavejit_row_sum(wavejit_engine* engine, const wavejit_row_sum_arguments* arguments,
                                          ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::row_sum::Calls>(engine, arguments, stream);
}
