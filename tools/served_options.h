// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an engine serves the model of --model, as options of a command.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/served_model.h"

namespace wavejit::tools {

struct ServedOptions {
  CLI::Option* ranks = nullptr;
  CLI::Option* page = nullptr;
};

// --tp and --page, into all of `served` but its configuration.
ServedOptions add_served(CLI::App& command, ServedModel& served);

}  // namespace wavejit::tools
