// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a function of the C ABI is written: exceptions stopped, the last detail kept per thread.
//
//   wavejit_status wavejit_x(wavejit_engine* engine, …) {
//     return guarded([&]() -> Result<void> { … });
//   }
//
// Used by c_api.cpp and by the families' own functions.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/call/engine.h"
#include "runtime/settings/failure.h"
#include "system/process_forks.h"
#include "wavejit/wavejit.h"

struct wavejit_engine {
  explicit wavejit_engine(std::unique_ptr<wavejit::runtime::Engine> opened = nullptr) : engine(std::move(opened)) {}

  // A child of the process that made it: threads, locks and the device are the parent's.
  bool is_of_parent() const noexcept { return wavejit::system::forks_seen() != forks; }

  std::unique_ptr<wavejit::runtime::Engine> engine;
  std::uint32_t forks = wavejit::system::forks_seen();
};

namespace wavejit::runtime {

// Becomes the thread's last detail, cut and on one line; answers the status.
wavejit_status keep_detail(wavejit_status status, std::string_view detail) noexcept;
const char* last_detail() noexcept;

// No exception crosses the ABI.
template <typename Call>
wavejit_status guarded(Call call) noexcept {
  try {
    Result<void> result = call();
    if (result) [[likely]]
      return WAVEJIT_OK;
    return keep_detail(result.error().status, result.error().detail.empty() ? wavejit_status_text(result.error().status)
                                                                            : std::string_view(result.error().detail));
  } catch (const std::bad_alloc&) {
    return keep_detail(WAVEJIT_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return keep_detail(WAVEJIT_INTERNAL, error.what());
  } catch (...) {
    return keep_detail(WAVEJIT_INTERNAL, "an exception of unknown type");
  }
}

// The engine of a call: there, and of this process.
[[gnu::cold]] Result<void> require_engine(const wavejit_engine* engine);
inline bool is_usable(const wavejit_engine* engine) noexcept { return engine != nullptr && !engine->is_of_parent(); }

template <typename Pointer>
Result<void> require(Pointer pointer, const char* name, const char* accepted) {
  if (pointer != nullptr) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + " = null; accepted: " + accepted);
}

}  // namespace wavejit::runtime
