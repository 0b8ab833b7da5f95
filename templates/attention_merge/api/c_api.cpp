// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_merge on an engine.
#include "runtime/call/call_functions.h"
#include "templates/attention_merge/call/call.h"

namespace wavejit::attention_merge {

using runtime::Engine;

struct Calls {
  using Arguments = wavejit_attention_merge_arguments;

  // `ask(call)` of the checked call.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
    const auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    const targets::Target& target = engine.target_row();
    if (auto fits = fits_waves(problem->dims, target); !fits) return std::unexpected(fits.error());
    MergeCall call(*arguments, *problem, target);
    return ask(call);
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_MERGE);

}  // namespace wavejit::attention_merge

extern "C" wavejit_status wavejit_attention_merge(wavejit_engine* engine,
                                                  const wavejit_attention_merge_arguments* arguments,
                                                  ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_merge::Calls>(engine, arguments, stream);
}
