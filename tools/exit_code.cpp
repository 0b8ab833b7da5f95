// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/exit_code.h"

#include <algorithm>
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

// "options.cache_layers = …" is how the interface names what people know as "--cache-layers …".
std::string as_typed(std::string detail) {
  constexpr std::string_view prefix = "options.";
  const std::size_t end = detail.find(" = ");
  if (!detail.starts_with(prefix) || end == std::string::npos) return detail;
  std::string field = detail.substr(prefix.size(), end - prefix.size());
  if (field == "cache_directory") field = "cache_dir";
  if (field == "cache_mode") field = "cache";
  if (field == "output_store") field = "o_store";
  std::ranges::replace(field, '_', '-');
  return "--" + field + detail.substr(end + 2);
}

}  // namespace

Result<void> checked(wavejit_status status) {
  if (status == WAVEJIT_OK) return {};
  const std::string detail = wavejit_last_detail();
  return failed(exit_code_of(status), detail.empty() ? wavejit_status_text(status) : as_typed(detail));
}

}  // namespace wavejit::tools
