// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/thunk/runtime_version.h"

#include <link.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <memory>
#include <string>

namespace wavejit::simgpu::thunk {
namespace {

constexpr std::string_view library = "libhsa-runtime64.so.";
constexpr std::string_view known = "1.18.";  // ROCm 7.1 and 7.2

// The file of the runtime that this process has loaded, links followed; empty when there is none.
std::string loaded_runtime() {
  std::string file;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        const std::string_view name = info->dlpi_name;
        if (name.find(library) == std::string_view::npos) return 0;
        const std::unique_ptr<char, void (*)(void*)> real(::realpath(info->dlpi_name, nullptr), std::free);
        *static_cast<std::string*>(into) = real != nullptr ? real.get() : info->dlpi_name;
        return 1;
      },
      &file);
  return file;
}

}  // namespace

bool knows_runtime(std::string_view file) {
  const std::size_t at = file.rfind(library);
  return at != std::string_view::npos && file.substr(at + library.size()).starts_with(known);
}

bool say_when_unknown() {
  const std::string file = loaded_runtime();
  if (file.empty() || knows_runtime(file)) return true;
  const std::string line = std::format(
      "wavejit simulated GPU: {} is a version of ROCr whose structures are not known; known is {}{}x (ROCm 7.2)\n",
      file, library, known);
  static_cast<void>(std::fputs(line.c_str(), stderr));
  return false;
}

}  // namespace wavejit::simgpu::thunk
