// A problem descriptor as the C ABI hands it over.
#pragma once

#include <string>

#include "runtime/descriptor.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

// Points into the descriptor and `text`, which must stay.
wavejit_problem parsed_problem(const ProblemDescriptor& descriptor, const std::string& text);

}  // namespace wavejit::runtime
