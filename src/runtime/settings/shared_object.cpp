// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/shared_object.h"

#include <dlfcn.h>
#include <unistd.h>

namespace wavejit::runtime {
namespace {

std::expected<void*, std::string> open(const std::string& path, int flags) {
  if (void* library = ::dlopen(path.c_str(), flags)) return library;
  const char* error = ::dlerror();  // per thread in glibc
  return std::unexpected(error != nullptr ? error : path + ": not loaded");
}

}  // namespace

std::string own_directory() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::expected<void*, std::string> open_beside(const std::string& name) {
  constexpr int flags = RTLD_NOW | RTLD_LOCAL;
  const std::string directory = own_directory();
  if (!directory.empty()) {
    const std::string path = directory + "/" + name;
    // A library that is there but broken is told, not passed over.
    if (::access(path.c_str(), F_OK) == 0) return open(path, flags);
  }
  return open(name, flags);
}

std::expected<void*, std::string> open_by_name(const std::string& name, bool resident_only) {
  return open(name, RTLD_NOW | RTLD_LOCAL | (resident_only ? RTLD_NOLOAD : 0));
}

void* symbol_of(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace wavejit::runtime
