// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code that `wavejit choose` writes for a call of attention_forward.
#pragma once

#include <string>

#include "templates/attention_forward/program/attention_choice.h"

namespace wavejit::attention_forward::program::choice {

std::string cpp_of(const AttentionChoice& call, const tools::Answers& answers);
std::string python_of(const AttentionChoice& call, const tools::Answers& answers);
std::string pytorch_of(const AttentionChoice& call, const tools::Answers& answers);

}  // namespace wavejit::attention_forward::program::choice
