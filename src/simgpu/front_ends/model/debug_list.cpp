// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/model/debug_list.h"

#include <dlfcn.h>

#include "simgpu/front_ends/thunk/images.h"

namespace wavejit::simgpu::model {

std::optional<CodeImage> find_loaded_image(std::uint64_t address) {
  // The library is open, or nobody would ask: a handle to it makes its names visible that RTLD_LOCAL hides.
  static const void* const list = [] {
    void* const runtime = ::dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return runtime == nullptr ? nullptr : ::dlsym(runtime, "_amdgpu_r_debug");
  }();
  if (list == nullptr) return std::nullopt;
  thunk::set_debug_list(list);
  return thunk::find_image(address);
}

}  // namespace wavejit::simgpu::model
