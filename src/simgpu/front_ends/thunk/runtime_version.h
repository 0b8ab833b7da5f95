// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ROCr has opened the thunk: its structures have no versions of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::simgpu::thunk {

// "/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1.18.0": whether its structures are those of abi.h.
bool knows_runtime(std::string_view file);
// The file of the runtime that this process has loaded, links followed; empty when there is none.
struct LoadedRuntime {
  std::string file;
  std::span<std::uint8_t> zeroed;  // what it writes to behind the file's contents (.bss)
};
LoadedRuntime loaded_runtime();
// False, and one line on stderr the first time, when the process has loaded an ROCr whose structures are not known.
bool say_when_unknown();

}  // namespace wavejit::simgpu::thunk
