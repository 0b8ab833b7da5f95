// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit-compile: one compile in a process of its own. The request comes on stdin, the answer (wire.h) goes to stdout;
// started by isolated.cpp, not by people.
//
//   wavejit-compile --time-limit <seconds>                            stdin: a spec's text
//   wavejit-compile --time-limit <seconds> --ir <target> <lowering>   stdin: IR text
//   wavejit-compile --time-limit <seconds> --identity <lowering>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "codegen/codegen_api.h"
#include "codegen/wire.h"
#include "system/file_descriptor.h"

namespace {

using namespace wavejit::codegen;

// No process outlives its purpose: it goes with its parent, at the time limit, and leaves no core file behind.
void limit_process(unsigned seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(seconds);
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
}

int answer(const Compiled& compiled) {
  const Bytes frame = wire::encode(compiled);
  const wavejit::system::FileDescriptor output(STDOUT_FILENO);
  return wavejit::system::write_all(output, std::span(reinterpret_cast<const char*>(frame.data()), frame.size())) ? 0
                                                                                                                  : 1;
}

Compiled from(const wavejit_codegen_result& result) {
  Compiled compiled;
  compiled.status = static_cast<Status>(result.status);
  compiled.detail = result.detail;
  compiled.bytes.assign(result.code_object, result.code_object + result.code_object_bytes);
  compiled.facts = result.facts;
  compiled.times = {.emit_ns = result.emit_ns,
                    .lower_ns = result.lower_ns,
                    .link_ns = result.link_ns,
                    .inspect_ns = result.inspect_ns};
  return compiled;
}

Compiled identity(const char* lowering) {
  const char* known = wavejit_codegen_table(WAVEJIT_CODEGEN_ABI)->lowering_identity(lowering);
  Compiled compiled;
  compiled.status = known ? Status::ok : Status::unavailable;
  compiled.detail = known ? known : "lowering is not available";
  return compiled;
}

constexpr const char* usage_text =
    "usage: wavejit-compile --time-limit <seconds> [--ir <target> <lowering> | --identity <lowering>]\n";

int usage() {
  std::fputs(usage_text, stderr);
  return 2;
}

int help() {
  std::fputs(
      "wavejit-compile compiles one kernel in a process of its own; libwavejit.so starts it where\n"
      "WAVEJIT_COMPILE=isolated asks for that. By hand `wavejit prebuild --compile isolated` is what you want.\n\n",
      stdout);
  std::fputs(usage_text, stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned seconds = 0;
  if (argc == 2 && std::string_view(argv[1]) == "--help") return help();
  if (argc < 3 || std::string_view(argv[1]) != "--time-limit") return usage();
  if (std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), seconds).ec != std::errc() || seconds == 0)
    return usage();
  limit_process(seconds);
  const std::span<char*> rest(argv + 3, static_cast<std::size_t>(argc - 3));
  const std::string_view mode = rest.empty() ? "" : rest[0];

  const struct wavejit_codegen_table* table = wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_options options = {};
  options.size = sizeof options;
  options.containment = WAVEJIT_CODEGEN_INSIDE;
  char error[256] = "";
  wavejit_codegen_service* service = table->create(&options, error, sizeof error);
  if (!service) {
    std::fprintf(stderr, "%s\n", error);
    return 1;
  }
  if (mode == "--identity" && rest.size() == 2) return answer(identity(rest[1]));

  Bytes text;
  const wavejit::system::FileDescriptor input(STDIN_FILENO);
  if (!wavejit::system::read_all(input, text)) {
    std::perror("stdin");
    return 1;
  }
  text.push_back('\0');
  const char* request = reinterpret_cast<const char*>(text.data());
  wavejit_codegen_result result = {};
  if (rest.empty()) {
    table->compile(service, request, &result);
  } else if (mode == "--ir" && rest.size() == 3) {
    table->compile_ir(service, rest[1], rest[2], request, &result);
  } else {
    return usage();
  }
  const int code = answer(from(result));
  // The answer is out; threads that a lost compile left behind are not waited for.
  _exit(code);
}
