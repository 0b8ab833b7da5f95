// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can be asked of a call of any family (wavejit_call_supported and its like), as one row a family, and the C function
// that makes the call. A family brings a class that checks its struct and hands the checked call on:
//
//   struct Calls {
//     using Arguments = wavejit_softmax_lse_arguments;
//     template <typename Answer, typename Ask>
//     static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
//       const auto problem = check(arguments);
//       if (!problem) return std::unexpected(problem.error());
//       SoftmaxCall call(*arguments, *problem, engine.target_row(), engine.toggles());
//       return ask(call);
//     }
//   };
//   extern const CallFunctions call_functions = functions_of<Calls>(WAVEJIT_SOFTMAX_LSE);
//
//   extern "C" wavejit_status wavejit_softmax_lse(…) { return run_call<Calls>(engine, arguments, stream); }
//
// It may have `run`, `is_ready`, `prepare` and `workspace` of its own, where a call is more than one checked call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/call/c_call.h"
#include "runtime/call/engine.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

struct CallFunctions {
  std::int32_t family = WAVEJIT_FAMILY_NONE;  // enum wavejit_family
  Result<void> (*supports)(const Engine& engine, const wavejit_call_head* call) = nullptr;
  Result<void> (*is_ready)(const Engine& engine, const wavejit_call_head* call) = nullptr;
  Result<void> (*prepare)(Engine& engine, const wavejit_call_head* call) = nullptr;
  Result<std::size_t> (*workspace)(const Engine& engine, const wavejit_call_head* call) = nullptr;
  Result<std::string> (*describe)(const Engine& engine, const wavejit_call_head* call) = nullptr;
};

// What a family's class does not have of its own.
template <typename Calls>
struct Answers {
  using Arguments = Calls::Arguments;

  static Result<void> run(Engine& engine, const Arguments* arguments, hip_abi::hipStream_t stream) {
    if constexpr (requires { Calls::run(engine, arguments, stream); })
      return Calls::run(engine, arguments, stream);
    else
      return Calls::template asked<void>(engine, arguments, [&](auto& call) { return engine.run(call, stream); });
  }
  static Result<void> supports(const Engine& engine, const Arguments* arguments) {
    return Calls::template asked<void>(engine, arguments, [&](auto& call) { return engine.supports(call); });
  }
  static Result<void> is_ready(const Engine& engine, const Arguments* arguments) {
    if constexpr (requires { Calls::is_ready(engine, arguments); })
      return Calls::is_ready(engine, arguments);
    else
      return Calls::template asked<void>(engine, arguments, [&](auto& call) { return engine.is_ready(call); });
  }
  static Result<void> prepare(Engine& engine, const Arguments* arguments) {
    if constexpr (requires { Calls::prepare(engine, arguments); })
      return Calls::prepare(engine, arguments);
    else
      return Calls::template asked<void>(engine, arguments, [&](auto& call) { return engine.load(call); });
  }
  static Result<std::size_t> workspace(const Engine& engine, const Arguments* arguments) {
    if constexpr (requires { Calls::workspace(engine, arguments); }) {
      return Calls::workspace(engine, arguments);
    } else {
      if (auto supported = supports(engine, arguments); !supported) return std::unexpected(supported.error());
      return 0;
    }
  }
  static Result<std::string> describe(const Engine& engine, const Arguments* arguments) {
    return Calls::template asked<std::string>(engine, arguments, [&](const auto& call) -> Result<std::string> {
      return call.descriptor(families::Call::Line::whole);
    });
  }
};

template <typename Arguments>
const Arguments* whole(const wavejit_call_head* head) {
  return reinterpret_cast<const Arguments*>(head);
}

// `head` is that of a struct of the family, or of one that its check refuses.
template <typename Calls>
constexpr CallFunctions functions_of(std::int32_t family) {
  using Arguments = Calls::Arguments;
  static_assert(offsetof(Arguments, head) == 0);
  return {
      .family = family,
      .supports =
          [](const Engine& engine, const wavejit_call_head* head) {
            return Answers<Calls>::supports(engine, whole<Arguments>(head));
          },
      .is_ready =
          [](const Engine& engine, const wavejit_call_head* head) {
            return Answers<Calls>::is_ready(engine, whole<Arguments>(head));
          },
      .prepare = [](Engine& engine,
                    const wavejit_call_head* head) { return Answers<Calls>::prepare(engine, whole<Arguments>(head)); },
      .workspace =
          [](const Engine& engine, const wavejit_call_head* head) {
            return Answers<Calls>::workspace(engine, whole<Arguments>(head));
          },
      .describe =
          [](const Engine& engine, const wavejit_call_head* head) {
            return Answers<Calls>::describe(engine, whole<Arguments>(head));
          }};
}

// The C function of a family. Hot.
template <typename Calls>
wavejit_status run_call(wavejit_engine* engine, const typename Calls::Arguments* arguments, ihipStream_t* stream) {
  return guarded([&]() -> Result<void> {
    if (!is_usable(engine)) [[unlikely]]
      return require_engine(engine);
    return Answers<Calls>::run(*engine->engine, arguments, stream);
  });
}

}  // namespace wavejit::runtime
