// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention's variants, as `wavejit variants` and `wavejit choose` tell of them (tools/variants/variants.h).
#pragma once

#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program {

const tools::Variants& attention_variants();

// The call that answers describe: questions by their names (variants_choice.cpp, attention_choice.cpp).
std::vector<tools::Question> choice_questions();
tools::Result<tools::ChosenCall> chosen_call(const tools::Answers& answers);

}  // namespace wavejit::attention_forward::program
