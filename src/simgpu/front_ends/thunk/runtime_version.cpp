// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/runtime_version.h"

#include <link.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <memory>
#include <string>

#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

// Wheels put a hash between the two: libhsa-runtime64-0ba78719.so.1.21.0.
constexpr std::string_view library = "libhsa-runtime64";
constexpr std::string_view library_ending = ".so.";
constexpr std::string_view known = "1.18.";  // ROCm 7.1 and 7.2

// The memory behind the file's contents of the segment that a library writes to.
std::span<std::uint8_t> zeroed_memory(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0 || segment.p_memsz <= segment.p_filesz) continue;
    auto* const start = host_pointer<std::uint8_t>(info.dlpi_addr + segment.p_vaddr);
    return {start + segment.p_filesz, start + segment.p_memsz};
  }
  return {};
}

}  // namespace

bool knows_runtime(std::string_view file) {
  const std::size_t at = file.rfind(library);
  const std::size_t version = at == std::string_view::npos ? at : file.find(library_ending, at + library.size());
  return version != std::string_view::npos && file.substr(version + library_ending.size()).starts_with(known);
}

LoadedRuntime loaded_runtime() {
  LoadedRuntime loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        const std::string_view name = info->dlpi_name;
        if (name.find(library) == std::string_view::npos) return 0;
        const std::unique_ptr<char, void (*)(void*)> real(::realpath(info->dlpi_name, nullptr), std::free);
        *static_cast<LoadedRuntime*>(into) = {.file = real != nullptr ? real.get() : info->dlpi_name,
                                              .zeroed = zeroed_memory(*info)};
        return 1;
      },
      &loaded);
  return loaded;
}

bool say_when_unknown() {
  const std::string file = loaded_runtime().file;
  if (file.empty() || knows_runtime(file)) return true;
  static std::atomic<bool> was_said = false;
  if (was_said.exchange(true)) return false;
  const std::string line = std::format(
      "wavejit simulated GPU: {} is a version of ROCr whose structures are not known; known is {}{}{}x (ROCm 7.1 and "
      "7.2). There are no GPUs for it\n",
      file, library, library_ending, known);
  static_cast<void>(std::fputs(line.c_str(), stderr));
  return false;
}

}  // namespace wavejit::simgpu::thunk
