// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C functions that take a call of any family, by its head (runtime/call/call_functions.h).
#include <array>
#include <string>
#include <utility>

#include "runtime/call/call_functions.h"
#include "wavejit/wavejit.h"

// One line a family, from WAVEJIT_FAMILIES in CMakeLists.txt.
#define WAVEJIT_FAMILY(name)                          \
  namespace wavejit::name {                           \
  extern const runtime::CallFunctions call_functions; \
  }
#include "registered_families.inc"
#undef WAVEJIT_FAMILY

using namespace wavejit::runtime;  // this file is the two worlds' seam

namespace {

struct FamilyOfCalls {
  const char* name;
  const CallFunctions* functions;
};
#define WAVEJIT_FAMILY(name) FamilyOfCalls{#name, &wavejit::name::call_functions},
constexpr std::array all_families = {
#include "registered_families.inc"
};
#undef WAVEJIT_FAMILY

// Those of the call's family. What else the head says, the family checks with the rest of the struct.
Result<const CallFunctions*> functions_of(const wavejit_call_head* call) {
  if (auto given = require(call, "call", "the head of a call: &call.head"); !given)
    return std::unexpected(std::move(given.error()));
  std::string accepted;
  if (call->size >= sizeof *call) {
    for (const FamilyOfCalls& family : all_families) {
      if (family.functions->family == call->family) return family.functions;
      accepted += (accepted.empty() ? "" : ", ") + std::to_string(family.functions->family) + " (" + family.name + ")";
    }
    return fail(WAVEJIT_INVALID_ARGUMENT, "head.family = " + std::to_string(call->family) + "; accepted: " + accepted);
  }
  return fail(WAVEJIT_INVALID_ARGUMENT,
              "head.size = " + std::to_string(call->size) + "; accepted: the size of the struct that head begins");
}

// `ask(functions)` of an engine that may be used.
template <typename Ask>
wavejit_status asked(const wavejit_engine* engine, const wavejit_call_head* call, Ask ask) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    const auto functions = functions_of(call);
    if (!functions) return std::unexpected(functions.error());
    return ask(**functions);
  });
}

}  // namespace

extern "C" {

wavejit_status wavejit_call_supported(wavejit_engine* engine, const wavejit_call_head* call) {
  return asked(engine, call, [&](const CallFunctions& family) { return family.supports(*engine->engine, call); });
}

wavejit_status wavejit_call_ready(wavejit_engine* engine, const wavejit_call_head* call) {
  return asked(engine, call, [&](const CallFunctions& family) { return family.is_ready(*engine->engine, call); });
}

wavejit_status wavejit_call_prepare(wavejit_engine* engine, const wavejit_call_head* call) {
  return asked(engine, call, [&](const CallFunctions& family) { return family.prepare(*engine->engine, call); });
}

wavejit_status wavejit_call_workspace(wavejit_engine* engine, const wavejit_call_head* call, size_t* bytes) {
  return asked(engine, call, [&](const CallFunctions& family) -> Result<void> {
    if (auto given = require(bytes, "bytes", "where to store the size"); !given) return given;
    const auto needed = family.workspace(*engine->engine, call);
    if (!needed) return std::unexpected(needed.error());
    *bytes = *needed;
    return {};
  });
}

wavejit_status wavejit_call_describe(wavejit_engine* engine, const wavejit_call_head* call, wavejit_line_callback line,
                                     void* context) {
  return asked(engine, call, [&](const CallFunctions& family) -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    const auto text = family.describe(*engine->engine, call);
    if (!text) return std::unexpected(text.error());
    line(context, text->c_str());
    return {};
  });
}

}  // extern "C"
