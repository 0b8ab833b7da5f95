// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks in processes side by side: the clock's switch and its log are a process's own.
#include <fmt/format.h>

#include "tools/tune/trial.h"
#include "tools/worker_processes.h"

namespace wavejit::tools::tune {

Result<void> run_tasks(const Tuning& tuning, const std::vector<Task>& tasks, int jobs,
                       const std::function<Result<void>(std::size_t index, const Trial& trial)>& finished) {
  const auto work = [&](std::size_t index) -> Result<std::string> {
    const Task& task = tasks[index];
    const Result<Trial> trial = run_trial(tuning, task, 1);
    if (trial) return to_line(*trial);
    return failed(trial.error().code, fmt::format("{} on {} with {}: {}", task.problem->text(), task.target,
                                                  to_text(task.candidate), trial.error().what));
  };
  return run_in_processes(tasks.size(), jobs, work, [&](std::size_t index, const std::string& answer) -> Result<void> {
    const auto trial = parse_line(answer);
    if (!trial) return failed(ExitCode::internal, "a worker's answer makes no sense: " + answer);
    return finished(index, *trial);
  });
}

}  // namespace wavejit::tools::tune
