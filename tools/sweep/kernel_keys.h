// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels a problem has on a pipeline: what tells two pipelines apart. A call's report names its first kernel
// alone.
#pragma once

#include <string>

#include "wavejit/wavejit.h"

namespace wavejit::tools::sweep {

// The keys of all of them, in the order in which they run; empty where the library tells none. No device is opened and
// nothing is compiled.
std::string kernel_keys(const wavejit_engine* engine, const std::string& pipeline, const std::string& descriptor);

}  // namespace wavejit::tools::sweep
