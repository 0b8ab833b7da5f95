// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of sparse_indexer on an engine.
#include "runtime/call/call_functions.h"
#include "templates/sparse_indexer/call/call.h"

namespace wavejit::sparse_indexer {

using runtime::Engine;

struct Calls {
  using Arguments = wavejit_sparse_indexer_arguments;

  // `ask(call)` of the checked call.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
    auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    take_rows(*problem, engine.target_row(), engine.toggles());
    IndexerCall call(*arguments, *problem, engine.target_row());
    return ask(call);
  }

  static Result<std::size_t> workspace(const Engine& engine, const Arguments* arguments) {
    auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    take_rows(*problem, engine.target_row(), engine.toggles());
    IndexerCall call(*arguments, *problem, engine.target_row());
    call.workspace = nullptr;  // whoever asks for the size has none yet
    if (auto supported = engine.supports(call); !supported) return std::unexpected(supported.error());
    return useful_workspace(*problem, engine.target_row());
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_SPARSE_INDEXER);

}  // namespace wavejit::sparse_indexer

extern "C" wavejit_status wavejit_sparse_indexer(wavejit_engine* engine,
                                                 const wavejit_sparse_indexer_arguments* arguments,
                                                 ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::sparse_indexer::Calls>(engine, arguments, stream);
}
