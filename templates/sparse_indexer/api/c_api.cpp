// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of sparse_indexer on an engine.
#include "runtime/call/call_functions.h"
#include "templates/sparse_indexer/call/call.h"

namespace wavejit::sparse_indexer {

struct Calls {
  using Arguments = wavejit_sparse_indexer_arguments;
  using Call = IndexerCall;

  static Result<IndexerProblem> plan(const runtime::Engine& engine, const Arguments* arguments) {
    auto problem = check(arguments);
    if (problem) take_rows(*problem, engine.target_row(), engine.toggles());
    return problem;
  }
  // A call without a workspace cuts no long rows.
  static std::size_t workspace(const runtime::Engine& engine, const IndexerProblem& problem) {
    return useful_workspace(problem, engine.target_row());
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_SPARSE_INDEXER);

}  // namespace wavejit::sparse_indexer

extern "C" wavejit_status wavejit_sparse_indexer(wavejit_engine* engine,
                                                 const wavejit_sparse_indexer_arguments* arguments,
                                                 ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::sparse_indexer::Calls>(engine, arguments, stream);
}
