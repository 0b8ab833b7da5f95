// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waves that share rows and a chunk of their keys (spec word chunk_waves), on targets whose tiles pass through
// registers.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

void emit_shared_register_walk(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan);

}  // namespace wavejit::attention_forward
