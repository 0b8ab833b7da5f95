// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of the C ABI that are sparse_indexer's.
#include "runtime/call/c_call.h"
#include "templates/sparse_indexer/call/call.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam

namespace {

namespace indexer = wavejit::sparse_indexer;

// `ask(call, problem)` of the checked call.
template <typename Ask>
wavejit_status asked(wavejit_engine* engine, const wavejit_sparse_indexer_arguments* arguments, Ask ask) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    auto problem = indexer::check(arguments);
    if (!problem) return std::unexpected(problem.error());
    const Engine& on = *engine->engine;
    indexer::take_rows(*problem, on.target_row(), on.toggles());
    indexer::IndexerCall call(*arguments, *problem, on.target_row());
    return ask(call, *problem);
  });
}

}  // namespace

extern "C" {

wavejit_status wavejit_sparse_indexer(wavejit_engine* engine, const wavejit_sparse_indexer_arguments* arguments,
                                      ihipStream_t* stream) {
  return asked(engine, arguments, [&](auto& call, const auto&) { return engine->engine->run(call, stream); });
}

wavejit_status wavejit_sparse_indexer_workspace(wavejit_engine* engine,
                                                const wavejit_sparse_indexer_arguments* arguments, size_t* bytes) {
  return asked(engine, arguments, [&](auto& call, const auto& problem) -> Result<void> {
    if (auto given = require(bytes, "bytes", "where the number of bytes goes"); !given) return given;
    call.workspace = nullptr;  // whoever asks for the size has none yet
    if (auto supported = engine->engine->supports(call); !supported) return supported;
    const auto parts = indexer::parts_of(problem, engine->engine->target_row());
    const std::uint64_t chosen = indexer::chosen_row_bytes(problem, parts);
    *bytes = problem.keeps_scores || chosen != 0
                 ? indexer::rounds_of(problem, parts,
                                      problem.keeps_scores ? indexer::most_workspace : chosen * problem.rows())
                       .workspace_bytes
                 : 0;
    return {};
  });
}

wavejit_status wavejit_sparse_indexer_supported(wavejit_engine* engine,
                                                const wavejit_sparse_indexer_arguments* arguments) {
  return asked(engine, arguments, [&](auto& call, const auto&) { return engine->engine->supports(call); });
}

wavejit_status wavejit_sparse_indexer_ready(wavejit_engine* engine, const wavejit_sparse_indexer_arguments* arguments) {
  return asked(engine, arguments, [&](auto& call, const auto&) { return engine->engine->is_ready(call); });
}

wavejit_status wavejit_sparse_indexer_describe(wavejit_engine* engine,
                                               const wavejit_sparse_indexer_arguments* arguments,
                                               wavejit_line_callback line, void* context) {
  return asked(engine, arguments, [&](const auto& call, const auto&) -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    line(context, call.descriptor(wavejit::families::Call::Line::whole).c_str());
    return {};
  });
}

}  // extern "C"
