// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Callbacks of the host, called from threads and places where an exception would end the process.
#pragma once

#include <string>

#include "runtime/settings/logging.h"

namespace wavejit::runtime {

// Calls `tell`, which may throw: that is dropped and logged. `whose`: "the progress callback of prepare".
template <typename Tell>
void tell_guarded(Logger& logger, const char* whose, const Tell& tell) noexcept {
  try {
    try {
      tell();
    } catch (...) {
      logger.write(LogLevel::warning, std::string(whose) + " threw an exception, which is dropped");
    }
  } catch (...) {
    return;  // nor is there memory for the log
  }
}

}  // namespace wavejit::runtime
