// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit choose` asks and writes of the indexer of sparse attention: which keys a row is to attend to, a family
// of its own.
#pragma once

#include <vector>

#include "templates/attention_forward/program/vocabulary.h"
#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program {

// Whether these answers are of the indexer.
bool is_indexer(const tools::Answers& answers);
// Adds its questions to those of attention, and leaves out of them what it has no use for.
void add_indexer_questions(std::vector<tools::Question>& questions);
tools::ChosenCall indexer_call(const tools::Answers& answers);

}  // namespace wavejit::attention_forward::program
