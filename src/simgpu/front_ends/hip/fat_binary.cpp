// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What clang's constructors call for a HIP program (CodeGen of "-x hip"): one fat binary per translation unit or per
// program, its kernels, its device variables, its managed variables.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <format>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/modules.h"
#include "simgpu/front_ends/hip/offload_bundle.h"
#include "simgpu/front_ends/hip/symbols.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::hip_front {

using namespace hip_abi;

namespace {

// The wrapper that clang emits into .hipFatBinSegment.
struct FatBinaryWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* binary;
  void* unused;
};
constexpr std::uint32_t wrapper_magic = 0x48495046;  // "HIPF"
constexpr std::uint32_t wrapper_version = 1;

struct ManagedVariable {
  std::string name;
  void* memory = nullptr;
};

using LoadResult = std::expected<std::shared_ptr<Module>, hipError_t>;

struct FatBinary {
  const void* image = nullptr;  // null: the wrapper was not one
  std::vector<ManagedVariable> managed;
  std::unordered_map<int, LoadResult> loaded;  // by ordinal
};

struct RegisteredFunction {
  FatBinary* binary = nullptr;
  std::string device_name;
  std::unordered_map<int, std::shared_ptr<Function>> functions;  // by ordinal
};

struct RegisteredVariable {
  FatBinary* binary = nullptr;
  std::string device_name;
};

// One lock: registration happens before main, look-ups once per launch of a host stub.
struct Registered {
  std::mutex mutex;
  std::unordered_map<void**, std::unique_ptr<FatBinary>> binaries;
  std::unordered_map<const void*, RegisteredFunction> functions;
  std::unordered_map<const void*, RegisteredVariable> variables;
  bool ending = false;
};
Registered& registered() {
  static auto* instance = new Registered;
  return *instance;
}

FatBinary* binary_of(void** handle) {
  const auto found = registered().binaries.find(handle);
  return found == registered().binaries.end() ? nullptr : found->second.get();
}

// The caller holds the lock.
LoadResult load_on(FatBinary& binary, int ordinal) {
  if (const auto found = binary.loaded.find(ordinal); found != binary.loaded.end()) return found->second;
  DeviceContext* context = find_context(ordinal);
  if (context == nullptr) return std::unexpected(hipErrorNoDevice);
  if (registered().ending) return std::unexpected(hipErrorDeinitialized);
  const std::size_t bytes = binary.image == nullptr ? 0 : image_size(binary.image);
  LoadResult result = std::unexpected(hipErrorInvalidImage);
  if (bytes != 0) result = load_image(*context, {static_cast<const std::byte*>(binary.image), bytes});
  if (result) {
    close_streams_at_exit();
    // Kernels reach a managed variable through a pointer of the same name.
    for (const ManagedVariable& variable : binary.managed) {
      const GlobalSymbol pointer = (*result)->find_global(variable.name);
      if (pointer.address != 0 && pointer.bytes == sizeof(void*)) {
        *host_pointer<void*>(pointer.address) = variable.memory;
      }
    }
  }
  binary.loaded.emplace(ordinal, result);
  return result;
}

}  // namespace

std::expected<std::shared_ptr<Function>, hipError_t> find_registered_function(const void* host_function, int ordinal) {
  const std::scoped_lock lock(registered().mutex);
  const auto found = registered().functions.find(host_function);
  if (found == registered().functions.end()) return std::unexpected(hipErrorInvalidDeviceFunction);
  RegisteredFunction& entry = found->second;
  auto& function = entry.functions[ordinal];
  if (function == nullptr) {
    const LoadResult module = load_on(*entry.binary, ordinal);
    if (!module) return std::unexpected(module.error());
    const Kernel* kernel = (*module)->find_kernel(entry.device_name);
    if (kernel == nullptr) return std::unexpected(hipErrorInvalidDeviceFunction);
    function = std::make_shared<Function>();
    function->module = *module;
    function->kernel = kernel;
    function->context = find_context(ordinal);
    remember_function(function);
  }
  return function;
}

hipError_t find_variable(const void* host_variable, void** address, std::size_t* bytes) {
  if (host_variable == nullptr) return hipErrorInvalidSymbol;
  if (current_context() == nullptr) return hipErrorNoDevice;
  const std::scoped_lock lock(registered().mutex);
  const auto found = registered().variables.find(host_variable);
  if (found == registered().variables.end()) return hipErrorInvalidSymbol;
  const LoadResult module = load_on(*found->second.binary, current_ordinal());
  if (!module) return module.error();
  const GlobalSymbol symbol = (*module)->find_global(found->second.device_name);
  if (symbol.address == 0) return hipErrorInvalidSymbol;
  *address = host_pointer<void>(symbol.address);
  *bytes = symbol.bytes;
  return hipSuccess;
}

void release_registered_modules() {
  const std::scoped_lock lock(registered().mutex);
  registered().ending = true;
  for (auto& [host_function, entry] : registered().functions) {
    for (const auto& [ordinal, function] : entry.functions) {
      if (function != nullptr) forget_function(function->handle());
    }
    entry.functions.clear();
  }
  for (auto& [handle, binary] : registered().binaries) binary->loaded.clear();
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

void** __hipRegisterFatBinary(const void* data) {
  auto binary = std::make_unique<FatBinary>();
  FatBinaryWrapper wrapper = {};
  if (data != nullptr) std::memcpy(&wrapper, data, sizeof wrapper);
  if (wrapper.magic == wrapper_magic && wrapper.version == wrapper_version) {
    binary->image = wrapper.binary;
  } else {
    std::fputs(
        std::format("wavejit simulated GPU: a fat binary has magic {:#x} and version {}, expected {:#x} and {}\n",
                    wrapper.magic, wrapper.version, wrapper_magic, wrapper_version)
            .c_str(),
        stderr);
  }
  auto** handle = reinterpret_cast<void**>(binary.get());
  const std::scoped_lock lock(registered().mutex);
  registered().binaries.emplace(handle, std::move(binary));
  return handle;
}

void __hipUnregisterFatBinary(void** handle) {
  const std::scoped_lock lock(registered().mutex);
  const FatBinary* binary = binary_of(handle);
  if (binary == nullptr) return;
  std::erase_if(registered().functions, [&](auto& item) {
    if (item.second.binary != binary) return false;
    for (const auto& [ordinal, function] : item.second.functions) {
      if (function != nullptr) forget_function(function->handle());
    }
    return true;
  });
  std::erase_if(registered().variables, [&](const auto& item) { return item.second.binary == binary; });
  registered().binaries.erase(handle);
}

void __hipRegisterFunction(void** handle, const void* host_function, char* /*device_function*/, const char* device_name,
                           unsigned /*thread_limit*/, void* /*thread_index*/, void* /*block_index*/,
                           dim3* /*block_dim*/, dim3* /*grid_dim*/, int* /*wave_size*/) {
  const std::scoped_lock lock(registered().mutex);
  FatBinary* binary = binary_of(handle);
  if (binary == nullptr || device_name == nullptr) return;
  registered().functions.insert_or_assign(
      host_function, RegisteredFunction{.binary = binary, .device_name = device_name, .functions = {}});
}

void __hipRegisterVar(void** handle, void* host_variable, char* /*host_name*/, char* device_name, int /*external*/,
                      std::size_t /*bytes*/, int /*constant*/, int /*global*/) {
  const std::scoped_lock lock(registered().mutex);
  FatBinary* binary = binary_of(handle);
  if (binary == nullptr || device_name == nullptr) return;
  registered().variables.insert_or_assign(host_variable,
                                          RegisteredVariable{.binary = binary, .device_name = device_name});
}

void __hipRegisterManagedVar(void** handle, void** pointer, void* initial_value, const char* name, std::size_t bytes,
                             unsigned alignment) {
  if (pointer == nullptr || name == nullptr || bytes == 0) return;
  void* memory =
      DeviceMemory::instance().allocate(bytes, MemoryKind::managed, 0, std::max<std::size_t>(alignment, 256));
  if (memory == nullptr) return;
  if (initial_value != nullptr) std::memcpy(memory, initial_value, bytes);
  *pointer = memory;
  const std::scoped_lock lock(registered().mutex);
  FatBinary* binary = binary_of(handle);
  if (binary != nullptr) binary->managed.push_back({.name = name, .memory = memory});
}

}  // namespace wavejit::hip_abi
