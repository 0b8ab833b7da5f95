// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dQ kernel: 4 waves of 32 query rows walk the key tiles that they see; delta on the way in.
//
//   Sᵀ = K · Qᵀ, dPᵀ − delta = V · dOᵀ − delta     a lane owns a query row, as in the forward kernels
//   dS = P ∘ (dP − delta), rounded where S stood
//   dQᵀ += Kᵀ · dSᵀ                                keys in the order in which the registers hold them
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

void emit_query_gradient(language::Kernel& kernel, const QueryKernel& spec);

}  // namespace wavejit::attention_backward
