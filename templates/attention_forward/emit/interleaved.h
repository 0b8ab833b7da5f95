// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits the interleaved pipeline: four waves, each of which overlaps its own softmax with its own matrix instructions.
// What happens when is a table, interleaved_schedule.h; every operation and its order per row are canonical
// (docs/canonical-arithmetic.md), so that results equal the generic kernel's bit by bit.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// `spec` has passed resources_of().
void emit_interleaved(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan);

}  // namespace wavejit::attention_forward
