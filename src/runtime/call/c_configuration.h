// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an options struct of the C ABI and the environment make of a function's configuration.
#pragma once

#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

// The configuration that `options` ask for, null for the defaults. Fails with the option and the value; what is wrong
// with a variable is a warning of the log, once a process.
Result<Config> configuration(const wavejit_engine_options* options);

}  // namespace wavejit::runtime
