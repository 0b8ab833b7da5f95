// Tasks in processes side by side: the clock's switch and its log are a process's own.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "tools/tune/trial.h"

namespace wavejit::tools::tune {
namespace {

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

// "<index> <trial>", or "<index> !<exit code> <what went wrong>".
std::string answer(std::size_t index, const Result<Trial>& trial) {
  if (trial) return fmt::format("{} {}\n", index, to_line(*trial));
  std::string what = trial.error().what;
  std::ranges::replace(what, '\n', ' ');
  return fmt::format("{} !{} {}\n", index, static_cast<int>(trial.error().code), what);
}

// Every `jobs`-th task. Its answers are lines of one write each, which a pipe keeps whole.
[[noreturn]] void work(const std::vector<Task>& tasks, std::size_t first, std::size_t jobs, int answers) {
  for (std::size_t i = first; i < tasks.size(); i += jobs) {
    Result<Trial> trial = failed(ExitCode::internal, "nothing happened");
    try {
      trial = run_trial(tasks[i], 1);
    } catch (const std::exception& error) {
      trial = failed(ExitCode::internal, error.what());
    }
    if (!write_all(answers, answer(i, trial)) || !trial) break;
  }
  ::_exit(0);
}

Result<void> take(const std::string& line, const std::vector<Task>& tasks,
                  const std::function<Result<void>(std::size_t, const Trial&)>& finished, std::size_t& done) {
  char* rest = nullptr;
  const std::size_t index = std::strtoull(line.c_str(), &rest, 10);
  const std::string text = *rest == ' ' ? rest + 1 : rest;
  if (index >= tasks.size()) return failed(ExitCode::internal, "a worker's answer makes no sense: " + line);
  if (text.starts_with('!')) {
    const auto code = static_cast<ExitCode>(std::strtol(text.c_str() + 1, &rest, 10));
    return failed(code, fmt::format("{} on {} with {}: {}", tasks[index].problem.text, tasks[index].target,
                                    to_text(tasks[index].candidate), *rest == ' ' ? rest + 1 : rest));
  }
  const auto trial = parse_line(text);
  if (!trial) return failed(ExitCode::internal, "a worker's answer makes no sense: " + line);
  ++done;
  return finished(index, *trial);
}

}  // namespace

Result<void> run_tasks(const std::vector<Task>& tasks, int jobs,
                       const std::function<Result<void>(std::size_t index, const Trial& trial)>& finished) {
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(std::max(jobs, 1)), tasks.size());
  // One pipe for all: lines are shorter than what is written in one piece (PIPE_BUF).
  const auto pipe = make_pipe();
  if (!pipe) return std::unexpected(pipe.error());
  std::fflush(nullptr);  // or every worker would print it again
  std::vector<pid_t> workers;
  for (std::size_t i = 0; i < count; ++i) {
    const pid_t process = ::fork();
    if (process == 0) {
      ::close(pipe->read);
      work(tasks, i, count, pipe->write);
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
      outcome = take(std::string(line, static_cast<std::size_t>(length - 1)), tasks, finished, done);
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
  if (outcome && done < tasks.size()) {
    return failed(ExitCode::internal, fmt::format("{} of {} trials were not run: a worker ended{}", tasks.size() - done,
                                                  tasks.size(), ended.empty() ? "" : " by " + ended));
  }
  return outcome;
}

}  // namespace wavejit::tools::tune
