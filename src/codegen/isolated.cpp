// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/isolated.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <format>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/wire.h"
#include "system/file_descriptor.h"

namespace wavejit::codegen::isolated {
namespace {

using Clock = std::chrono::steady_clock;

// The program is installed in bin/ beside the library's lib/; a relocated copy of both still finds itself.
std::expected<std::string, Failure> program_path(const Options& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!options.program.empty()) {
    if (access(options.program.c_str(), X_OK) == 0) return options.program;
    return fail(Status::unavailable, std::format("compiler program '{}': {}", options.program, std::strerror(errno)));
  }
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&compile), &here) == 0 || !here.dli_fname) {
    return fail(Status::unavailable, "the library does not know where it was loaded from; name the compiler program");
  }
  const fs::path folder = fs::weakly_canonical(here.dli_fname, error).parent_path();
  for (const fs::path& candidate :
       {folder / "wavejit-compile", folder / "../bin/wavejit-compile", folder / "../../bin/wavejit-compile"}) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return fail(Status::unavailable,
              std::format("wavejit-compile is neither beside the library nor in ../bin of '{}'", folder.string()));
}

// A host that has closed its standard descriptors gets their numbers for new files; moved here, they survive being
// replaced one after the other in the child.
system::FileDescriptor above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return system::FileDescriptor(descriptor);
  const system::FileDescriptor low(descriptor);
  return system::FileDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

struct Ended {
  Bytes output;
  std::string errors;  // the last few hundred bytes of stderr
  bool timed_out = false;
  int wait_status = -1;  // -1: someone else has reaped the process
};

void keep_tail(std::string& text, std::size_t limit) {
  if (text.size() > 2 * limit) text.erase(0, text.size() - limit);
}

std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);
  return std::string(text.substr(0, 300));
}

// The environment passes through, except that comgr shall not use the user's compile cache, and that its linker shall
// not sign with what LLD_VERSION says.
std::vector<std::string> environment_for_child() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("AMD_COMGR_CACHE=") && !text.starts_with("LLD_VERSION=")) variables.emplace_back(text);
  }
  variables.emplace_back("AMD_COMGR_CACHE=0");
  return variables;
}

struct Pipe {
  system::FileDescriptor reader;
  system::FileDescriptor writer;
};
std::expected<Pipe, Failure> make_pipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Status::internal, std::format("pipe: {}", std::strerror(errno)));
  return Pipe{.reader = above_standard(ends[0]), .writer = above_standard(ends[1])};
}

// Null-terminated, as posix_spawn wants them; they point into `texts`.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Child {
  pid_t process = -1;
  system::FileDescriptor output;
  system::FileDescriptor errors;
};

// The program with `input` as its standard input, and with no signal blocked or handled.
std::expected<Child, Failure> start(const std::vector<std::string>& arguments, std::span<const char> input,
                                    const Options& options) {
  auto program = program_path(options);
  if (!program) return std::unexpected(program.error());
  const system::FileDescriptor input_file = above_standard(memfd_create("wavejit-request", MFD_CLOEXEC));
  if (!input_file || !system::write_all(input_file, input) || lseek(input_file.get(), 0, SEEK_SET) != 0) {
    return fail(Status::internal, std::format("memfd: {}", std::strerror(errno)));
  }
  auto output = make_pipe();
  if (!output) return std::unexpected(output.error());
  auto errors = make_pipe();
  if (!errors) return std::unexpected(errors.error());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input_file.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output->writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors->writer.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = {*program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_for_child();
  Child child;
  const int spawned = posix_spawn(&child.process, program->c_str(), &actions, &attributes, pointers_to(words).data(),
                                  pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (spawned != 0)
    return fail(Status::unavailable, std::format("cannot start '{}': {}", *program, std::strerror(spawned)));
  child.output = std::move(output->reader);
  child.errors = std::move(errors->reader);
  return child;
}

// What the child says until it has closed both pipes, or its time is over: then it is killed.
void collect(Child& child, Clock::time_point deadline, Ended& ended) {
  while (child.output || child.errors) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      ended.timed_out = true;
      kill(child.process, SIGKILL);
      break;
    }
    std::array<pollfd, 2> waits = {{{.fd = child.output.get(), .events = POLLIN, .revents = 0},
                                    {.fd = child.errors.get(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(waits.data(), waits.size(), static_cast<int>(std::min<long long>(left + 1, 1 << 30)));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    std::array<char, 65536> block;
    const auto drain = [&block](system::FileDescriptor& file, const auto& take) {
      const ssize_t count = read(file.get(), block.data(), block.size());
      if (count > 0)
        take(std::string_view(block.data(), static_cast<std::size_t>(count)));
      else if (count == 0 || errno != EINTR)
        file.reset();
    };
    if (waits[0].revents != 0)
      drain(child.output,
            [&](std::string_view bytes) { ended.output.insert(ended.output.end(), bytes.begin(), bytes.end()); });
    if (waits[1].revents != 0)
      drain(child.errors, [&](std::string_view bytes) {
        ended.errors += bytes;
        keep_tail(ended.errors, 4096);
      });
  }
}

// The pipes are closed, so the end is near; a process that lingers is over its time like one that computes.
void reap(const Child& child, Clock::time_point deadline, Ended& ended) {
  int status = 0;
  for (;;) {
    const pid_t reaped = waitpid(child.process, &status, ended.timed_out ? 0 : WNOHANG);
    if (reaped == child.process) {
      ended.wait_status = status;
      return;
    }
    if (reaped < 0 && errno != EINTR) return;  // ECHILD: the host reaps children by itself
    if (reaped == 0) {
      if (Clock::now() > deadline) {
        ended.timed_out = true;
        kill(child.process, SIGKILL);
      }
      poll(nullptr, 0, 1);
    }
  }
}

std::expected<Ended, Failure> run(const std::vector<std::string>& arguments, std::span<const char> input,
                                  const Options& options) {
  auto child = start(arguments, input, options);
  if (!child) return std::unexpected(child.error());
  const auto deadline = Clock::now() + std::chrono::milliseconds(options.time_limit_ms);
  Ended ended;
  collect(*child, deadline, ended);
  reap(*child, deadline, ended);
  return ended;
}

// How the process ended when it gave no usable answer.
Failure describe(const Ended& ended, const Options& options, const std::string& frame_error) {
  const std::string said = ended.errors.empty() ? "" : "; it said: " + last_line(ended.errors);
  std::string what;
  if (ended.timed_out) {
    what = std::format("did not finish within {} ms and was killed", options.time_limit_ms);
  } else if (ended.wait_status >= 0 && WIFSIGNALED(ended.wait_status)) {
    const int signal = WTERMSIG(ended.wait_status);
    const char* name = sigabbrev_np(signal);
    what = std::format("was ended by SIG{}", name ? name : std::to_string(signal));
  } else if (ended.wait_status >= 0 && WEXITSTATUS(ended.wait_status) != 0) {
    what = std::format("exited with {}", WEXITSTATUS(ended.wait_status));
  } else {
    what = "cannot be used: " + frame_error;
  }
  return {.status = Status::crashed, .detail = "the isolated compiler " + what + said};
}

Compiled from(Failure failure) {
  Compiled compiled;
  compiled.status = failure.status;
  compiled.detail = std::move(failure.detail);
  return compiled;
}

}  // namespace

Compiled compile(const Request& request, const Options& options) {
  const std::string seconds = std::to_string(options.time_limit_ms / 1000 + 2);
  std::vector<std::string> arguments = {"--time-limit", seconds};
  if (request.source == Request::Source::ir) {
    arguments.insert(arguments.end(), {"--ir", request.target, std::string(families::to_text(request.lowering))});
  }
  const auto ended = run(arguments, request.text, options);
  if (!ended) return from(ended.error());
  auto compiled = wire::decode(ended->output);
  if (!compiled) return from(describe(*ended, options, compiled.error()));
  return std::move(*compiled);
}

std::expected<std::string, Failure> lowering_identity(const std::string& lowering, const Options& options) {
  const auto ended = run({"--time-limit", "62", "--identity", lowering}, {}, options);
  if (!ended) return std::unexpected(ended.error());
  auto answer = wire::decode(ended->output);
  if (!answer) return std::unexpected(describe(*ended, options, answer.error()));
  if (answer->status != Status::ok) return fail(answer->status, answer->detail);
  return answer->detail;
}

}  // namespace wavejit::codegen::isolated
