// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/modules.h"

#include <algorithm>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/device_properties.h"
#include "simgpu/front_ends/hip/image_sections.h"
#include "simgpu/front_ends/hip/offload_bundle.h"
#include "simgpu/front_ends/hip/symbols.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::hip_front {

using namespace hip_abi;

namespace {

struct LoadedModule {
  std::shared_ptr<Module> module;
  DeviceContext* context = nullptr;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Function>, std::less<>> functions;
};

// Never destroyed, as the registry of streams.
struct Handles {
  std::shared_mutex mutex;
  std::unordered_map<hipModule_t, std::shared_ptr<LoadedModule>> modules;
  std::unordered_map<hipFunction_t, std::shared_ptr<Function>> functions;
};
Handles& handles() {
  static auto* instance = new Handles;
  return *instance;
}

std::shared_ptr<LoadedModule> find_module(hipModule_t handle) {
  const std::shared_lock lock(handles().mutex);
  const auto found = handles().modules.find(handle);
  return found == handles().modules.end() ? nullptr : found->second;
}

hipError_t load(hipModule_t* handle, std::span<const std::byte> image) {
  DeviceContext* context = current_context();
  if (context == nullptr) return hipErrorNoDevice;
  // Stricter than HIP 7.2, which lets loads pass and may allocate and copy behind them.
  if (const hipError_t refused = refuse_unsafe_call(); refused != hipSuccess) return refused;
  auto module = load_image(*context, image);
  if (!module) return module.error();
  auto loaded = std::make_shared<LoadedModule>();
  loaded->module = std::move(*module);
  loaded->context = context;
  *handle = reinterpret_cast<hipModule_t>(loaded.get());
  const std::unique_lock lock(handles().mutex);
  handles().modules.emplace(*handle, std::move(loaded));
  return hipSuccess;
}

hipError_t load_from_memory(hipModule_t* handle, const void* image) {
  if (handle == nullptr || image == nullptr) return hipErrorInvalidValue;
  if (current_context() == nullptr) return hipErrorNoDevice;
  const std::size_t bytes = image_size(image);
  if (bytes == 0) {
    return refuse(hipErrorInvalidImage, "the image is no ELF code object, offload bundle or compressed bundle");
  }
  return load(handle, {static_cast<const std::byte*>(image), bytes});
}

hipError_t load_from_file(hipModule_t* handle, const char* path) {
  if (handle == nullptr || path == nullptr) return hipErrorInvalidValue;
  if (current_context() == nullptr) return hipErrorNoDevice;
  std::error_code error;
  // As AMD's HIP 7.2 answers.
  if (std::filesystem::is_directory(path, error)) return hipErrorInvalidValue;
  if (!std::filesystem::is_regular_file(path, error)) return hipErrorFileNotFound;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return hipErrorFileNotFound;
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) return hipErrorInvalidImage;
  return load(handle, bytes);
}

// For messages: libraries have thousands.
std::string names_of(const Module& module) {
  constexpr std::size_t most = 8;
  const std::vector<const Kernel*> kernels = module.kernels();
  std::string names;
  for (std::size_t i = 0; i < std::min(most, kernels.size()); ++i) {
    names += (i == 0 ? "" : ", ") + kernels[i]->info().name;
  }
  if (kernels.size() > most) names += std::format(" and {} more", kernels.size() - most);
  return kernels.empty() ? "none" : names;
}

hipError_t get_function(hipFunction_t* handle, hipModule_t module_handle, const char* name) {
  if (handle == nullptr || name == nullptr || *name == 0) return hipErrorInvalidValue;
  const auto loaded = find_module(module_handle);
  if (loaded == nullptr) return hipErrorInvalidHandle;
  const std::scoped_lock lock(loaded->mutex);
  auto& function = loaded->functions[name];
  if (function == nullptr) {
    const Kernel* kernel = loaded->module->find_kernel(name);
    if (kernel == nullptr) {
      loaded->functions.erase(name);
      return refuse(hipErrorNotFound,
                    std::format("no kernel '{}'; the code object has {}", name, names_of(*loaded->module)));
    }
    function = std::make_shared<Function>();
    function->module = loaded->module;
    function->kernel = kernel;
    function->context = loaded->context;
    remember_function(function);
  }
  *handle = function->handle();
  return hipSuccess;
}

hipError_t unload(hipModule_t handle) {
  const auto loaded = find_module(handle);
  if (loaded == nullptr) return hipErrorNotFound;  // as AMD's HIP 7.2 answers
  if (const hipError_t refused = refuse_unsafe_call(); refused != hipSuccess) return refused;
  loaded->context->synchronize();
  for (const auto& [name, function] : loaded->functions) forget_function(function->handle());
  const std::unique_lock lock(handles().mutex);
  return handles().modules.erase(handle) != 0 ? hipSuccess : hipErrorNotFound;
}

}  // namespace

std::expected<std::shared_ptr<Module>, hipError_t> load_image(DeviceContext& context,
                                                              std::span<const std::byte> image) {
  const auto code_object = select_code_object(image, target_id(context.device()));
  if (!code_object) return std::unexpected(refuse(code_object.error().error, code_object.error().text));
  if (const std::string problem = problem_of_sections(*code_object); !problem.empty())
    return std::unexpected(refuse(hipErrorInvalidImage, problem));
  auto module = context.device().load(*code_object);
  if (!module) {
    return std::unexpected(refuse(to_hip(module.error().code), module.error().text));
  }
  return std::move(*module);
}

void remember_function(const std::shared_ptr<Function>& function) {
  const std::unique_lock lock(handles().mutex);
  handles().functions.emplace(function->handle(), function);
}

void forget_function(hipFunction_t handle) {
  const std::unique_lock lock(handles().mutex);
  handles().functions.erase(handle);
}

std::shared_ptr<Function> find_function(hipFunction_t handle) {
  const std::shared_lock lock(handles().mutex);
  const auto found = handles().functions.find(handle);
  return found == handles().functions.end() ? nullptr : found->second;
}

std::expected<std::shared_ptr<Function>, hipError_t> find_any_function(const void* function) {
  if (function == nullptr) return std::unexpected(hipErrorInvalidDeviceFunction);
  auto handle = reinterpret_cast<hipFunction_t>(const_cast<void*>(function));
  if (auto known = find_function(handle)) return known;
  if (current_context() == nullptr) return std::unexpected(hipErrorNoDevice);
  return find_registered_function(function, current_ordinal());
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

hipError_t hipModuleLoad(hipModule_t* module, const char* path) { return finish(load_from_file(module, path)); }
hipError_t hipModuleLoadData(hipModule_t* module, const void* image) { return finish(load_from_memory(module, image)); }
hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned /*option_count*/,
                               hipJitOption* /*options*/, void** /*option_values*/) {
  return finish(load_from_memory(module, image));
}
hipError_t hipModuleLoadFatBinary(hipModule_t* module, const void* image) {
  return finish(load_from_memory(module, image));
}
hipError_t hipModuleUnload(hipModule_t module) { return finish(unload(module)); }

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  return finish(get_function(function, module, name));
}

hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t handle) {
  const auto loaded = find_module(handle);
  if (loaded == nullptr) return finish(hipErrorInvalidHandle);
  if (count == nullptr) return finish(hipErrorInvalidValue);
  *count = static_cast<unsigned>(loaded->module->kernels().size());
  return finish(hipSuccess);
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, std::size_t* bytes, hipModule_t handle, const char* name) {
  if ((pointer == nullptr && bytes == nullptr) || name == nullptr || *name == 0) return finish(hipErrorInvalidValue);
  const auto loaded = find_module(handle);
  if (loaded == nullptr) return finish(hipErrorInvalidHandle);
  const GlobalSymbol symbol = loaded->module->find_global(name);
  if (symbol.address == 0) return finish(hipErrorNotFound);
  if (pointer != nullptr) *pointer = host_pointer<void>(symbol.address);
  if (bytes != nullptr) *bytes = symbol.bytes;
  return finish(hipSuccess);
}

hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* symbol) {
  if (function == nullptr || symbol == nullptr) return finish(hipErrorInvalidValue);
  if (current_context() == nullptr) return finish(hipErrorNoDevice);
  const auto found = find_registered_function(symbol, current_ordinal());
  if (!found) return finish(found.error());
  *function = (*found)->handle();
  return finish(hipSuccess);
}

const char* hipKernelNameRef(hipFunction_t handle) {
  const auto function = find_function(handle);
  return function == nullptr ? nullptr : function->info().name.c_str();
}

const char* hipKernelNameRefByPtr(const void* host_function, hipStream_t /*stream*/) {
  const auto function = find_any_function(host_function);
  return function ? (*function)->info().name.c_str() : nullptr;
}

}  // namespace wavejit::hip_abi
