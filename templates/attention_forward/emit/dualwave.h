// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dual-wave pipeline: 8 waves in two groups one cluster apart (dualwave_schedule.h).
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// The whole kernel, for a spec that resources_of() admits.
void emit_dualwave(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan);

}  // namespace wavejit::attention_forward
