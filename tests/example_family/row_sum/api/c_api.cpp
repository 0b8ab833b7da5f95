// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function of the C ABI that is row_sum's.
#include "runtime/call/c_call.h"
#include "tests/example_family/row_sum/call/call.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam

extern "C" wavejit_status wavejit_row_sum(wavejit_engine* engine, const wavejit_row_sum_arguments* arguments,
                                          ihipStream_t* stream) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    const auto problem = wavejit::row_sum::check(arguments);
    if (!problem) return std::unexpected(problem.error());
    wavejit::row_sum::RowSumCall call(*arguments, *problem);
    return engine->engine->run(call, stream);
  });
}
