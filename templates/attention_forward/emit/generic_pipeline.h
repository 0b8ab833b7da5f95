// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The generic pipeline, for a spec that resources_of() admits.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

void emit_generic(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan);

}  // namespace wavejit::attention_forward
