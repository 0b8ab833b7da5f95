// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem descriptor as the C ABI hands it over.
#pragma once

#include <string>

#include "templates/attention_forward/call/descriptor.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward {

// Points into the descriptor and `text`, which must stay.
wavejit_problem parsed_problem(const ProblemDescriptor& descriptor, const std::string& text);

}  // namespace wavejit::attention_forward
