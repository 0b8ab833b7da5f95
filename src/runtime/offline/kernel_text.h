// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels of a problem as text: what the templates emit, or what the compiler makes of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/libraries/codegen_library.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

struct KernelText {
  std::string spec;
  std::string text;
};

// In the order in which they run. `target` as explain takes it.
Result<std::vector<KernelText>> kernel_texts(const Config& config, std::string_view descriptor, std::string_view target,
                                             wavejit_kernel_form form, CodegenLibrary& codegen);

}  // namespace wavejit::runtime
