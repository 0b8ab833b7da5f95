// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_merge`: O and LSE of each part from files, the merged ones to files, checked against float64
// if asked.
#pragma once

#include <memory>

#include "tools/family.h"

namespace wavejit::attention_merge::program {

std::unique_ptr<tools::ArrayCall> make_array_call();

}  // namespace wavejit::attention_merge::program
