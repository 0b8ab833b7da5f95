// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The remote layer, opened when one is configured: libwavejit_remote.so holds hiredis and libcrypto, and a process
// without a remote layer never maps it.
#pragma once

#include <expected>
#include <string>

#include "cache/remote_layer.h"
#include "runtime/settings/config.h"
#include "runtime/settings/logging.h"

namespace wavejit::runtime {

// Without a store when none is configured. The error is why what is configured is not used, and what to do.
std::expected<cache::RemoteOptions, std::string> open_remote(const Config& config);
// The same for callers that go on without it: the error is one warning a process.
cache::RemoteOptions open_remote_or_warn(const Config& config, Logger& logger);

}  // namespace wavejit::runtime
