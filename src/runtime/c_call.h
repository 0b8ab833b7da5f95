// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a function of the C ABI is written: exceptions stopped, the last detail kept per thread.
//
//   wavejit_status wavejit_x(wavejit_engine* engine, …) {
//     return guarded([&]() -> Result<void> { … });
//   }
//
// Used by c_api.cpp and by the families' own functions.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "runtime/engine.h"
#include "runtime/failure.h"
#include "wavejit/wavejit.h"

struct wavejit_engine {
  std::unique_ptr<wavejit::runtime::Engine> engine;
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

template <typename Pointer>
Result<void> require(Pointer pointer, const char* name, const char* accepted) {
  if (pointer != nullptr) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + " = null; accepted: " + accepted);
}

}  // namespace wavejit::runtime
