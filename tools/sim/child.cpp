// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sim/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace wavejit::tools {

namespace {

std::atomic<pid_t> running_child = 0;

// A terminal's signal (Ctrl-C) comes from the kernel and reaches the program as well. Any other signal to this process is
// meant for the program.
void hand_on(int signal, siginfo_t* info, void* /*context*/) {
  const pid_t child = running_child.load();
  if (child > 0 && info->si_code != SI_KERNEL) ::kill(child, signal);
}

constexpr std::array handed_on = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Forwards signals to the child while it lives. SIGCHLD gets its default, so that waitpid sees the child's end even if the
// caller ignores it. Restores the old handlers.
class SignalsOfParent {
 public:
  SignalsOfParent() {
    for (std::size_t i = 0; i < handed_on.size(); ++i) {
      struct sigaction wanted{};
      wanted.sa_sigaction = hand_on;
      wanted.sa_flags = SA_SIGINFO;
      ::sigaction(handed_on[i], &wanted, &before_[i]);
    }
    struct sigaction usual{};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, &child_before_);
  }
  ~SignalsOfParent() { restore(); }
  SignalsOfParent(const SignalsOfParent&) = delete;
  SignalsOfParent& operator=(const SignalsOfParent&) = delete;
  void restore() const {
    for (std::size_t i = 0; i < handed_on.size(); ++i) ::sigaction(handed_on[i], &before_[i], nullptr);
    ::sigaction(SIGCHLD, &child_before_, nullptr);
  }

 private:
  std::array<struct sigaction, handed_on.size()> before_{};
  struct sigaction child_before_{};
};

}  // namespace

std::vector<char*> words_of(const std::vector<std::string>& program) {
  std::vector<char*> words;
  words.reserve(program.size() + 1);
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

int ChildEnd::shell_code() const {
  constexpr int signals_from = 128;
  return signal == 0 ? code : signals_from + signal;
}

Result<ChildEnd> run_child(const std::vector<std::string>& program) {
  constexpr int cannot_start = 127;
  const std::vector<char*> words = words_of(program);
  // The child says why it could not become the program; becoming it closes the pipe.
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return failed(ExitCode::internal, fmt::format("a pipe: {}", std::strerror(errno)));
  const SignalsOfParent signals;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    signals.restore();
    // A kill of this process is meant for the program.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(cannot_start);
    ::execvp(words[0], words.data());
    const int why = errno;
    static_cast<void>(::write(pipe[1], &why, sizeof why));
    ::_exit(cannot_start);
  }
  running_child = child;
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return failed(ExitCode::internal, fmt::format("a process: {}", std::strerror(errno)));
  }
  int why = 0;
  const bool is_started = ::read(pipe[0], &why, sizeof why) <= 0;
  ::close(pipe[0]);
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  running_child = 0;
  if (ended < 0) return failed(ExitCode::internal, fmt::format("how {} ended: {}", program[0], std::strerror(errno)));
  if (!is_started)
    return failed(ExitCode::file, fmt::format("{} cannot be started: {}", program[0], std::strerror(why)));
  if (WIFSIGNALED(status)) return ChildEnd{.signal = WTERMSIG(status)};
  return ChildEnd{.code = WEXITSTATUS(status)};
}

}  // namespace wavejit::tools
