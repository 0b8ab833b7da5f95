// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of cache_append on an engine.
#include "runtime/call/call_functions.h"
#include "templates/cache_append/call/call.h"

namespace wavejit::cache_append {

struct Calls {
  using Arguments = wavejit_cache_append_arguments;
  using Call = AppendCall;

  static Result<AppendProblem> plan(const runtime::Engine& engine, const Arguments* arguments) {
    auto problem = check(arguments);
    if (problem)
      if (auto fits = fits_waves(problem->widest_head, engine.target_row()); !fits)
        return std::unexpected(fits.error());
    return problem;
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_CACHE_APPEND);

}  // namespace wavejit::cache_append

extern "C" wavejit_status wavejit_cache_append(wavejit_engine* engine, const wavejit_cache_append_arguments* arguments,
                                               ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::cache_append::Calls>(engine, arguments, stream);
}
