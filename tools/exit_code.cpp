// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/exit_code.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace wavejit::tools {

const char* exit_code_table() {
  return "Exit codes\n"
         "  0  done\n"
         "  1  a check did not pass: an error beyond the bound, a damaged cache entry\n"
         "  2  the command line: an unknown option, a value or descriptor that cannot be right\n"
         "  3  a file: an input that is no such array, an output that cannot be written\n"
         "  4  not supported by this version on this target\n"
         "  5  the compiler failed or is not there\n"
         "  6  the device is not there, or refused work or memory\n"
         "  7  a fault of wavejit itself";
}

namespace {

ExitCode exit_code_of(wavejit_status status) {
  switch (status) {
    case WAVEJIT_OK:
      return ExitCode::ok;
    case WAVEJIT_INVALID_ARGUMENT:
      return ExitCode::usage;
    case WAVEJIT_UNSUPPORTED:
      return ExitCode::unsupported;
    case WAVEJIT_COMPILE_FAILED:
    case WAVEJIT_NO_COMPILER:
    case WAVEJIT_NOT_READY:  // neither compiled nor allowed to be: the program seals and captures nothing
    case WAVEJIT_SEALED:
      return ExitCode::compile_failed;
    case WAVEJIT_NO_DEVICE:
    case WAVEJIT_LAUNCH_FAILED:
    case WAVEJIT_OUT_OF_MEMORY:
    case WAVEJIT_DEVICE_ERROR:
      return ExitCode::device;
    case WAVEJIT_IO_ERROR:
    case WAVEJIT_NOT_FOUND:
      return ExitCode::file;
    case WAVEJIT_INTERNAL:
      return ExitCode::internal;
  }
  return ExitCode::internal;
}

void replace_first(std::string& text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

// What the interface's fields are called on the command line, at the beginning of a detail.
struct Typed {
  std::string_view field;
  std::string_view option;
};
constexpr std::array<Typed, 6> typed = {{{"options.cache_directory = ", "--cache-dir "},
                                         {"options.cache_mode = ", "--cache "},
                                         {"cache_directory = ", "--cache-dir "},
                                         {"cache_mode = ", "--cache "},
                                         {"device = ", "--device "},
                                         {"output = ", "--output "}}};

// "options.cache_layers = …" is how the interface names what people know as "--cache-layers …", and who is told of a
// variable may not know that the option stands beside it.
std::string as_typed(std::string detail) {
  const auto named = std::ranges::find_if(typed, [&](const Typed& each) { return detail.starts_with(each.field); });
  constexpr std::string_view prefix = "options.";
  const std::size_t end = detail.find(" = ");
  if (named != typed.end()) {
    detail.replace(0, named->field.size(), named->option);
  } else if (detail.starts_with(prefix) && end != std::string::npos) {
    std::string field = detail.substr(prefix.size(), end - prefix.size());
    std::ranges::replace(field, '_', '-');
    detail = "--" + field + " " + detail.substr(end + 3);
  }
  replace_first(detail, "arguments.targets: ", "--target: ");
  replace_first(detail, "target is not given", "--target is not given");
  replace_first(detail, "accepted without a GPU: WAVEJIT_DEVICE=", "accepted without a GPU: --device ");
  return detail;
}

}  // namespace

Result<void> checked(wavejit_status status) {
  if (status == WAVEJIT_OK) return {};
  const std::string detail = wavejit_last_detail();
  return failed(exit_code_of(status), detail.empty() ? wavejit_status_text(status) : as_typed(detail));
}

}  // namespace wavejit::tools
