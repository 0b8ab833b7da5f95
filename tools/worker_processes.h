// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks in processes side by side.
//
// A process has one simulated GPU, with one clock and one log. Tasks that use them at the same time need a process
// each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tools/exit_code.h"

namespace wavejit::tools {

// What a process remembers (engines, where their memory lies) lives as long as it does: of every task that it runs, or
// of one.
enum class WorkerLife { all_its_tasks, one_task };

// Starts `jobs` processes. Process i runs work(i), work(i + jobs), … and sends each answer back: one line of less than
// PIPE_BUF bytes. `take` gets each answer in this process, as it comes. The first failure of `work` or `take` stops
// all.
Result<void> run_in_processes(std::size_t tasks, int jobs,
                              const std::function<Result<std::string>(std::size_t index)>& work,
                              const std::function<Result<void>(std::size_t index, const std::string& answer)>& take,
                              WorkerLife life = WorkerLife::all_its_tasks);

}  // namespace wavejit::tools
