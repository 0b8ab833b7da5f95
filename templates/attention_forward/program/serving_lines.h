// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What attention_forward is called for by an engine that serves a model (`wavejit prebuild --model`).
#pragma once

#include <string>
#include <vector>

#include "tools/served_model.h"

namespace wavejit::attention_forward::program {

std::vector<std::string> serving_lines(const tools::ServedModel& served);

}  // namespace wavejit::attention_forward::program
