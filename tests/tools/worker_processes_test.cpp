// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/worker_processes.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

namespace wavejit::tools {
namespace {

// What each of six tasks says, by two workers: how many its process had run before it.
std::vector<std::string> tasks_before(WorkerLife life) {
  std::vector<std::string> answers(6);
  int before = 0;  // a process's own
  const auto ran = run_in_processes(
      answers.size(), 2, [&](std::size_t) -> Result<std::string> { return std::to_string(before++); },
      [&](std::size_t index, const std::string& answer) -> Result<void> {
        answers[index] = answer;
        return {};
      },
      life);
  EXPECT_TRUE(ran) << ran.error().what;
  return answers;
}

TEST(WorkerProcessesTest, RemembersAsLongAsItLives) {
  EXPECT_EQ(tasks_before(WorkerLife::all_its_tasks), (std::vector<std::string>{"0", "0", "1", "1", "2", "2"}));
  EXPECT_EQ(tasks_before(WorkerLife::one_task), (std::vector<std::string>{"0", "0", "0", "0", "0", "0"}));
}

TEST(WorkerProcessesTest, TellsWhatWentWrong) {
  for (const WorkerLife life : {WorkerLife::all_its_tasks, WorkerLife::one_task}) {
    std::size_t taken = 0;
    const auto take = [&](std::size_t, const std::string&) -> Result<void> {
      ++taken;
      return {};
    };
    const auto refuses = [](std::size_t index) -> Result<std::string> {
      if (index == 1) return failed(ExitCode::device, "no memory");
      return "done";
    };
    const auto refused = run_in_processes(3, 1, refuses, take, life);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::device);
    EXPECT_EQ(refused.error().what, "no memory");
    EXPECT_EQ(taken, 1U);  // nothing runs behind a failure

    const auto dies = [](std::size_t index) -> Result<std::string> {
      if (index == 1) std::raise(SIGKILL);
      return "done";
    };
    const auto died = run_in_processes(3, 1, dies, take, life);
    ASSERT_FALSE(died);
    EXPECT_EQ(died.error().what, "2 of 3 tasks were not run: a worker ended by signal 9");
  }
}

}  // namespace
}  // namespace wavejit::tools
