// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A descriptor of attention_forward as the laboratory takes it.
#pragma once

#include <string>

#include "templates/attention/program/experiment.h"
#include "tools/exit_code.h"

namespace wavejit::attention_forward::program {

// A failure with ExitCode::unsupported means that the library knows such problems and does not compute this one.
tools::Result<attention::program::Experiment> parse_experiment(const std::string& descriptor);

}  // namespace wavejit::attention_forward::program
