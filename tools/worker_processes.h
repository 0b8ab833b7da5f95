// Tasks in processes side by side: what a process has one of, as the simulated GPU's clock and its log, every worker
// has to itself.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tools/exit_code.h"

namespace wavejit::tools {

// `work` runs in one of `jobs` workers, each of which takes every `jobs`-th task, and answers one line of less than
// PIPE_BUF bytes. `take` hears every answer here as it comes. The first failure of either stops all.
Result<void> run_in_processes(std::size_t tasks, int jobs,
                              const std::function<Result<std::string>(std::size_t index)>& work,
                              const std::function<Result<void>(std::size_t index, const std::string& answer)>& take);

}  // namespace wavejit::tools
