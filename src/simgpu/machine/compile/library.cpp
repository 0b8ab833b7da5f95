// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <format>
#include <mutex>

namespace wavejit::simgpu::compile {
namespace {

constexpr const char* library_name = "libwavejit_simgpu_compile.so";

std::atomic<const Table*> opened{nullptr};
std::once_flag once;

void say(const std::string& reason) {
  std::fputs(std::format("wavejit simgpu: WAVEJIT_SIM_ENGINE=compile: {}; kernels are interpreted\n", reason).c_str(),
             stderr);
}

// Opens the library beside this one; in the folder above, if a front end's library contains the engine (lib/rocr,
// lib/wavejit/rocr); or in the library folder beside the folder of a program that contains the engine.
void* open_beside() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&library), &self) == 0 || self.dli_fname == nullptr) return nullptr;
  std::string folder = self.dli_fname;
  folder.erase(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  for (const char* from : {"", "../", "../../", "../lib/"}) {
    void* const handle = dlopen((folder + from + library_name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
  }
  return nullptr;
}

void open() {
  void* handle = open_beside();
  if (handle == nullptr) handle = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    return say(error != nullptr ? error : std::string(library_name) + " cannot be opened");
  }
  void* const symbol = dlsym(handle, table_symbol);
  const Table* const table = symbol != nullptr ? reinterpret_cast<TableFunction>(symbol)() : nullptr;
  if (table == nullptr || table->shape != shape_of_types()) {
    return say(std::string(library_name) + " is not the one that was built with this library");
  }
  opened.store(table, std::memory_order_release);
}

}  // namespace

const Table* library() {
  std::call_once(once, open);
  return opened.load(std::memory_order_acquire);
}

void give_up(const std::string& reason) {
  if (opened.exchange(nullptr) != nullptr) say(reason);
}

}  // namespace wavejit::simgpu::compile
