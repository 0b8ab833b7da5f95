// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The subcommands. Each function describes one to CLI11 and arranges that `chosen` runs it once the command line has
// been understood.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tools/exit_code.h"
#include "tools/family.h"

namespace wavejit::tools {

using Chosen = std::function<Result<ExitCode>()>;

// With the options of `family`.
void add_run(CLI::App& program, Chosen& chosen, const Family& family);
void add_explain(CLI::App& program, Chosen& chosen);
void add_prebuild(CLI::App& program, Chosen& chosen);
void add_profile(CLI::App& program, Chosen& chosen);
void add_compare(CLI::App& program, Chosen& chosen);
void add_sweep(CLI::App& program, Chosen& chosen);
void add_invariance(CLI::App& program, Chosen& chosen);
void add_doctor(CLI::App& program, Chosen& chosen);
void add_sim(CLI::App& program, Chosen& chosen);
void add_tune(CLI::App& program, Chosen& chosen);
void add_cache(CLI::App& program, Chosen& chosen);
void add_cache_transfer(CLI::App& cache, Chosen& chosen);  // of add_cache: gc, pack, …, push, pull
void add_variants(CLI::App& program, Chosen& chosen);
void add_supported(CLI::App& program, Chosen& chosen);
void add_version(CLI::App& program, Chosen& chosen);
void add_completion(CLI::App& program, Chosen& chosen);
// The page wavejit.1, in roff.
std::string manual_page(const CLI::App& program);

}  // namespace wavejit::tools
