// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dK/dV kernel: 4 waves of 32 keys walk the query rows that see them, from the first row tile to the last, and in
// each row tile the heads of the group.
//
//   S = Q · Kᵀ, dP − delta = dO · Vᵀ − delta       a lane owns a key; K and V stay in registers
//   P, dS rounded where they stood
//   dVᵀ += dOᵀ · P, dKᵀ += Qᵀ · dS                 rows in the order in which the registers hold them
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

void emit_key_gradient(language::Kernel& kernel, const KeyKernel& spec);

}  // namespace wavejit::attention_backward
