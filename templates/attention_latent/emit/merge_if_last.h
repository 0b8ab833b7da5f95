// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The end of a walk whose parts are merged in the same launch: by the waves of the workgroup that is the last of its
// tile of rows to leave parts.
#pragma once

#include "templates/attention_latent/emit/workgroup.h"

namespace wavejit::attention_latent {

// Called after the last part's stores. `scale`: c > 0, or 1 if scores are modified.
void merge_if_last(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
                   language::Value* scale);

}  // namespace wavejit::attention_latent
