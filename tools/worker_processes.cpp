// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/worker_processes.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <vector>

namespace wavejit::tools {
namespace {

using Work = std::function<Result<std::string>(std::size_t)>;
using Take = std::function<Result<void>(std::size_t, const std::string&)>;

struct Pipe {
  int read = -1;
  int write = -1;
};

Result<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) return failed(ExitCode::internal, std::string("pipe: ") + std::strerror(errno));
  return Pipe{.read = ends[0], .write = ends[1]};
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// "<index> =<answer>", or "<index> !<exit code> <what went wrong>".
std::string line_of(std::size_t index, const Result<std::string>& answer) {
  std::string text =
      answer ? "=" + *answer : fmt::format("!{} {}", static_cast<int>(answer.error().code), answer.error().what);
  std::ranges::replace(text, '\n', ' ');
  return fmt::format("{} {}\n", index, text);
}

// Whether the next task may run.
bool run_task(std::size_t index, const Work& work, int answers) {
  Result<std::string> answer = failed(ExitCode::internal, "nothing happened");
  try {
    answer = work(index);
  } catch (const std::exception& error) {
    answer = failed(ExitCode::internal, error.what());
  }
  std::string line = line_of(index, answer);
  if (line.size() > PIPE_BUF) {
    answer = failed(ExitCode::internal, fmt::format("a worker's answer has {} bytes", line.size()));
    line = line_of(index, answer);
  }
  return write_all(answers, line) && answer;
}

// The same in a process that ends with the task. Its signal becomes that of this one, which waits for nothing else.
bool run_task_apart(std::size_t index, const Work& work, int answers) {
  const pid_t process = ::fork();
  if (process < 0) {
    const auto answer = failed(ExitCode::internal, std::string("fork: ") + std::strerror(errno));
    write_all(answers, line_of(index, answer));
    return false;
  }
  if (process == 0) ::_exit(run_task(index, work, answers) ? 0 : 1);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) {
    std::signal(WTERMSIG(status), SIG_DFL);
    std::raise(WTERMSIG(status));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Every `jobs`-th task. Answers are lines of one write each, which a pipe keeps whole.
[[noreturn]] void run_worker(std::size_t tasks, std::size_t first, std::size_t jobs, const Work& work, int answers,
                             WorkerLife life) {
  const auto run = life == WorkerLife::one_task ? run_task_apart : run_task;
  for (std::size_t i = first; i < tasks; i += jobs)
    if (!run(i, work, answers)) break;
  ::_exit(0);
}

Result<void> take_line(const std::string& line, std::size_t tasks, const Take& take, std::size_t& done) {
  char* rest = nullptr;
  const std::size_t index = std::strtoull(line.c_str(), &rest, 10);
  const std::string text = *rest == ' ' ? rest + 1 : rest;
  if (text.starts_with('!')) {
    const auto code = static_cast<ExitCode>(std::strtol(text.c_str() + 1, &rest, 10));
    return failed(code, *rest == ' ' ? rest + 1 : rest);
  }
  if (index >= tasks || !text.starts_with('='))
    return failed(ExitCode::internal, "a worker's answer makes no sense: " + line);
  ++done;
  return take(index, text.substr(1));
}

}  // namespace

Result<void> run_in_processes(std::size_t tasks, int jobs, const Work& work, const Take& take, WorkerLife life) {
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(std::max(jobs, 1)), tasks);
  // One pipe for all: see PIPE_BUF.
  const auto pipe = make_pipe();
  if (!pipe) return std::unexpected(pipe.error());
  std::fflush(nullptr);  // or every worker would print it again
  std::vector<pid_t> workers;
  for (std::size_t i = 0; i < count; ++i) {
    const pid_t process = ::fork();
    if (process == 0) {
      ::close(pipe->read);
      run_worker(tasks, i, count, work, pipe->write, life);
    }
    if (process > 0) workers.push_back(process);
  }
  ::close(pipe->write);
  Result<void> outcome;
  if (workers.size() < count) outcome = failed(ExitCode::internal, std::string("fork: ") + std::strerror(errno));
  std::size_t done = 0;
  if (std::FILE* answers = ::fdopen(pipe->read, "r"); answers != nullptr) {
    char* line = nullptr;
    std::size_t capacity = 0;
    while (outcome) {
      const ssize_t length = ::getline(&line, &capacity, answers);
      if (length <= 0) break;
      outcome = take_line(std::string(line, static_cast<std::size_t>(length - 1)), tasks, take, done);
    }
    std::free(line);
    std::fclose(answers);  // who still works hears of it at the next answer
  }
  std::string ended;
  for (const pid_t process : workers) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGPIPE) ended = fmt::format("signal {}", WTERMSIG(status));
  }
  if (outcome && done < tasks) {
    return failed(ExitCode::internal, fmt::format("{} of {} tasks were not run: a worker ended{}", tasks - done, tasks,
                                                  ended.empty() ? "" : " by " + ended));
  }
  return outcome;
}

}  // namespace wavejit::tools
