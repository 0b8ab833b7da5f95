// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call would do, without doing it: its route, the kernels' keys, whether they are on disk, and why each other
// route was refused. And what this version supports, from its own tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/libraries/codegen_library.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

// `target` empty: that of the configured device. The device must be a simulated one then: a real one would have to be
// opened to tell its target.
Result<std::vector<std::string>> explain(const Config& config, std::string_view descriptor, std::string_view target,
                                         CodegenLibrary& codegen);
// The specs of the kernels that the call would run, in their order.
Result<std::vector<std::string>> kernels_of(const Config& config, std::string_view descriptor, std::string_view target);
std::vector<std::string> supported();

}  // namespace wavejit::runtime
