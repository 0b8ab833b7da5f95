// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit choose` asks and writes where keys and values are one tensor: latent attention, a family of its own.
#pragma once

#include <vector>

#include "templates/attention_forward/program/vocabulary.h"
#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program {

// Whether these answers are of latent attention.
bool is_latent(const tools::Answers& answers);
// Asked after the question that decides is_latent.
std::vector<tools::Question> latent_questions();
// What it has not, windows and lists of blocks, is refused.
tools::Result<tools::ChosenCall> latent_call(const tools::Answers& answers);

}  // namespace wavejit::attention_forward::program
