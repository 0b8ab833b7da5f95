// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program under way while a test looks at what it does, waits for it or kills it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tool_test_support.h"

namespace wavejit::tools {

// run_program in a process group of its own.
class BackgroundProgram {
 public:
  BackgroundProgram(const ScratchDirectory& scratch, const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& variables = {}) {
    child_ = ::fork();
    if (child_ != 0) {
      ::setpgid(child_, child_);  // here and there: whoever comes first
      return;
    }
    ::setpgid(0, 0);
    ::setenv("TMPDIR", words_.path().c_str(), 1);
    const Outcome outcome = run_program(scratch, arguments, variables);
    write_text(words_ / "out", outcome.out);
    write_text(words_ / "err", outcome.err);
    ::_exit(outcome.code);
  }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;
  ~BackgroundProgram() { kill(); }

  Outcome finish() {
    Outcome outcome;
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = -1;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = read_text(words_ / "out");
    outcome.err = read_text(words_ / "err");
    return outcome;
  }

  // At once and without a chance to tidy up; the program is gone when this returns.
  void kill() {
    if (child_ < 0) return;
    EXPECT_EQ(::kill(-child_, SIGKILL), 0);
    EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
    // The group ends with its last process; what nobody collects is dead all the same.
    for (int i = 0; i < 1000 && ::kill(-child_, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    child_ = -1;
  }

 private:
  ScratchDirectory words_;
  pid_t child_ = -1;
};

// Looks until it is so; a minute and a half is long enough on any machine.
template <typename Condition>
bool becomes_true(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace wavejit::tools
