// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_merge on an engine.
#include "runtime/call/call_functions.h"
#include "templates/attention_merge/call/call.h"

namespace wavejit::attention_merge {

struct Calls {
  using Arguments = wavejit_attention_merge_arguments;
  using Call = MergeCall;

  static Result<MergeProblem> plan(const runtime::Engine& engine, const Arguments* arguments) {
    auto problem = check(arguments);
    if (problem)
      if (auto fits = fits_waves(problem->dims, engine.target_row()); !fits) return std::unexpected(fits.error());
    return problem;
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_MERGE);

}  // namespace wavejit::attention_merge

extern "C" wavejit_status wavejit_attention_merge(wavejit_engine* engine,
                                                  const wavejit_attention_merge_arguments* arguments,
                                                  ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_merge::Calls>(engine, arguments, stream);
}
