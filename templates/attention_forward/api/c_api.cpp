// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of the C ABI that are attention_forward's.
#include "runtime/call/c_call.h"
#include "templates/attention_forward/api/run.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam

extern "C" {

wavejit_status wavejit_attention_forward(wavejit_engine* engine, const wavejit_attention_forward_arguments* arguments,
                                         ihipStream_t* stream) {
  return guarded([&]() -> Result<void> {
    if (!is_usable(engine)) [[unlikely]]
      return require_engine(engine);
    return wavejit::attention_forward::run(*engine->engine, arguments, stream);
  });
}

wavejit_status wavejit_attention_forward_workspace(wavejit_engine* engine,
                                                   const wavejit_attention_forward_arguments* arguments,
                                                   size_t* bytes) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(bytes, "bytes", "where to store the size"); !given) return given;
    const auto needed = wavejit::attention_forward::workspace_of(*engine->engine, arguments);
    if (!needed) return std::unexpected(needed.error());
    *bytes = *needed;
    return {};
  });
}

wavejit_status wavejit_attention_forward_supported(wavejit_engine* engine,
                                                   const wavejit_attention_forward_arguments* arguments) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return wavejit::attention_forward::supports(*engine->engine, arguments);
  });
}

wavejit_status wavejit_attention_forward_ready(wavejit_engine* engine,
                                               const wavejit_attention_forward_arguments* arguments) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return wavejit::attention_forward::is_ready(*engine->engine, arguments);
  });
}

wavejit_status wavejit_attention_forward_describe(wavejit_engine* engine,
                                                  const wavejit_attention_forward_arguments* arguments,
                                                  wavejit_line_callback line, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    const auto text = wavejit::attention_forward::description_of(*engine->engine, arguments);
    if (!text) return std::unexpected(text.error());
    line(context, text->c_str());
    return {};
  });
}

}  // extern "C"
