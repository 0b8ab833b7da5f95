// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can be asked of a call of any family (wavejit_call_supported and its like), as one row a family, and the C function
// that makes the call. A family brings a class that names its types and checks and plans a struct:
//
//   struct Calls {
//     using Arguments = wavejit_softmax_lse_arguments;
//     using Call = SoftmaxCall;  // made of the arguments, what plan() says, the target and the toggles
//     static Result<SoftmaxProblem> plan(const Engine& engine, const Arguments* arguments) { return check(arguments); }
//   };
//   extern const CallFunctions call_functions = functions_of<Calls>(WAVEJIT_SOFTMAX_LSE);
//
//   extern "C" wavejit_status wavejit_softmax_lse(…) { return run_call<Calls>(engine, arguments, stream); }
//
// A thread remembers its last calls (families/call/known_calls.h) if the class has `is_remembered` as well. It says
// whether a call may be remembered: its plan may depend on no address except those in moving_pointers. `bytes_of(tensor)`
// says how many bytes a tensor touches. A class may also have `workspace`, if a call can use more memory than it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "families/call/known_calls.h"
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

// The calls of this thread. What `known` finds may go while hooks and loggers run: a call has a copy.
template <typename Calls>
struct Remembered {
  using Plan = decltype(Calls::plan(std::declval<const Engine&>(), nullptr))::value_type;
  static inline constinit thread_local families::KnownCalls<typename Calls::Arguments, Plan> calls;

  static const Plan* known(const Engine& engine, const Calls::Arguments& arguments) {
    return calls.find(engine.number(), arguments);
  }
  static void keep(const Engine& engine, const Calls::Arguments& arguments, const Plan& plan) {
    if (arguments.head.size == sizeof arguments && arguments.head.report == nullptr && Calls::is_remembered(arguments))
      calls.keep(engine.number(), arguments, Calls::bytes_of, plan);
  }
};

// The answers of a family's calls.
template <typename Calls>
struct Answers {
  using Arguments = Calls::Arguments;

  static Result<void> run(Engine& engine, const Arguments* arguments, hip_abi::hipStream_t stream) {
    if constexpr (requires { Calls::is_remembered(*arguments); }) {
      // The size first: a struct of another has no more than that.
      if (arguments != nullptr && arguments->head.size == sizeof *arguments) [[likely]] {
        if (const auto* known = Remembered<Calls>::known(engine, *arguments); known != nullptr) [[likely]] {
          typename Calls::Call call(*arguments, *known, engine.target_row(), engine.toggles());
          return engine.run(call, stream);
        }
      }
    }
    return run_checked(engine, arguments, stream);
  }
  static Result<void> supports(const Engine& engine, const Arguments* arguments) {
    return asked<void>(engine, arguments, [&](auto& call) { return engine.supports(call); });
  }
  static Result<void> is_ready(const Engine& engine, const Arguments* arguments) {
    return asked<void>(engine, arguments, [&](auto& call) { return engine.is_ready(call); });
  }
  static Result<void> prepare(Engine& engine, const Arguments* arguments) {
    return asked<void>(engine, arguments, [&](auto& call) { return engine.prepare_call(call); });
  }
  // As if the call brought no workspace: whoever asks for the size has none yet.
  static Result<std::size_t> workspace(const Engine& engine, const Arguments* arguments) {
    const auto plan = Calls::plan(engine, arguments);
    if (!plan) return std::unexpected(plan.error());
    if constexpr (requires { arguments->split; }) {
      if (arguments->split.workspace != nullptr) {
        Arguments without = *arguments;
        without.head.size = sizeof without;  // a larger struct ends with zeros, which were looked at
        without.split.workspace = nullptr;
        without.split.workspace_bytes = 0;
        return workspace(engine, &without);
      }
    }
    typename Calls::Call call(*arguments, *plan, engine.target_row(), engine.toggles());
    if (auto supported = engine.supports(call); !supported) return std::unexpected(supported.error());
    if constexpr (requires { Calls::workspace(engine, *plan); })
      return Calls::workspace(engine, *plan);
    else
      return call.workspace_bytes;
  }
  static Result<std::string> describe(const Engine& engine, const Arguments* arguments) {
    return asked<std::string>(engine, arguments, [&](const auto& call) -> Result<std::string> {
      if (auto good = call.check_workspace(); !good) return std::unexpected(good.error());
      return call.descriptor(families::Call::Line::whole);
    });
  }

 private:
  // `ask(call)` of the checked call; nothing is launched.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
    const auto plan = Calls::plan(engine, arguments);
    if (!plan) return std::unexpected(plan.error());
    typename Calls::Call call(*arguments, *plan, engine.target_row(), engine.toggles());
    return ask(call);
  }
  // A call that the thread does not know.
  [[gnu::noinline]] static Result<void> run_checked(Engine& engine, const Arguments* arguments,
                                                    hip_abi::hipStream_t stream) {
    const auto plan = Calls::plan(engine, arguments);
    if (!plan) return std::unexpected(plan.error());
    if constexpr (requires { Calls::is_remembered(*arguments); }) Remembered<Calls>::keep(engine, *arguments, *plan);
    typename Calls::Call call(*arguments, *plan, engine.target_row(), engine.toggles());
    return engine.run(call, stream);
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
