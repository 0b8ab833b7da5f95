// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit tune` may choose from: rows and keys of a workgroup, by how many workgroups a launch has. And the rows
// of kernel/tuned_defaults.inc.
#pragma once

#include "tools/tuning.h"

namespace wavejit::attention_backward::program {

const tools::Tuning& gradient_tuning();

}  // namespace wavejit::attention_backward::program
