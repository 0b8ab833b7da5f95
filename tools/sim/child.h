// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that this one starts and waits for.
#pragma once

#include <string>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools {

// As execvp takes them; they point into `program`.
std::vector<char*> words_of(const std::vector<std::string>& program);

struct ChildEnd {
  int code = 0;    // what it returned
  int signal = 0;  // what ended it, or 0
  // What a shell answers: the code, or 128 + the signal.
  int shell_code() const;
};

// Starts a program with this process's environment and waits for its end. Signals to this process (INT, QUIT, TERM, HUP,
// USR1, USR2) are forwarded to the program, except those of a terminal, which reach it anyway. The program does not
// outlive this process. Fails if the program cannot be started.
Result<ChildEnd> run_child(const std::vector<std::string>& program);

}  // namespace wavejit::tools
