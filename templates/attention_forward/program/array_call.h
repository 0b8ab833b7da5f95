// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_forward`: q, k and v from .npy files, one call, O and LSE to .npy files.
#pragma once

#include <memory>

#include "tools/family.h"

namespace wavejit::attention_forward::program {

std::unique_ptr<tools::ArrayCall> make_array_call();

}  // namespace wavejit::attention_forward::program
