// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fake_hip.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace wavejit::tests {
namespace {

using namespace hip_abi;

FakeHip* hip_state = nullptr;
thread_local int current = 0;
thread_local hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;

hipError_t get_device_count(int* count) {
  *count = 2;
  return hipSuccess;
}
hipError_t get_device(int* device) {
  *device = current;
  return hipSuccess;
}
hipError_t set_device(int device) {
  ++fake_hip().device_switches;
  current = device;
  return hipSuccess;
}
hipError_t get_properties(hipDeviceProp_tR0600* properties, int) {
  std::strcpy(properties->name, "Fake GPU");
  std::strcpy(properties->gcnArchName, "gfx950:sramecc+:xnack-");
  properties->multiProcessorCount = fake_hip().compute_units;
  return hipSuccess;
}
hipError_t get_attribute(int* value, hipDeviceAttribute_t attribute, int) {
  if (attribute != hipDeviceAttributeNumberOfXccs || fake_hip().xcds == 0) return hipErrorInvalidValue;
  *value = fake_hip().xcds;
  return hipSuccess;
}
const char* error_name(hipError_t error) { return describe_error(error).name; }
const char* error_string(hipError_t error) { return describe_error(error).text; }
hipError_t last_error() {
  ++fake_hip().errors_cleared;
  return hipSuccess;
}
hipError_t allocate(void** memory, std::size_t bytes) {
  if (fake_hip().allocate_error != hipSuccess) return fake_hip().allocate_error;
  ++fake_hip().allocations;
  *memory = std::malloc(bytes);
  return hipSuccess;
}
hipError_t release(void* memory) {
  ++fake_hip().frees;
  std::free(memory);
  return hipSuccess;
}
hipError_t copy(void* to, const void* from, std::size_t bytes, hipMemcpyKind) {
  std::memcpy(to, from, bytes);
  return hipSuccess;
}
hipError_t synchronize() { return hipSuccess; }
hipError_t is_capturing(hipStream_t, hipStreamCaptureStatus* status) {
  ++fake_hip().capture_questions;
  *status = fake_hip().capturing;
  return hipSuccess;
}
hipError_t exchange_capture_mode(hipStreamCaptureMode* mode) {
  std::swap(capture_mode, *mode);
  return hipSuccess;
}
hipError_t module_load(hipModule_t* module, const void* image) {
  FakeHip& hip = fake_hip();
  if (capture_mode != hipStreamCaptureModeRelaxed) ++hip.strict_loads;
  if (hip.loads_to_refuse > 0) {
    --hip.loads_to_refuse;
    return hip.load_error;
  }
  const std::uint64_t number = ++hip.module_loads;
  *module = numbered<ihipModule_t>(number);
  const std::scoped_lock lock(hip.mutex);
  hip.loaders.insert(std::this_thread::get_id());
  const auto* bytes = static_cast<const unsigned char*>(image);
  hip.last_image.assign(bytes, bytes + 8);
  return hipSuccess;
}
hipError_t module_unload(hipModule_t) {
  ++fake_hip().module_unloads;
  return hipSuccess;
}
hipError_t get_function(hipFunction_t* function, hipModule_t module, const char* name) {
  if (std::string_view(name) != "attention_forward") return hipErrorNotFound;
  *function = reinterpret_cast<hipFunction_t>(module);
  return hipSuccess;
}
hipError_t launch(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned, hipStream_t stream, void**, void** extra) {
  FakeHip& hip = fake_hip();
  if (hip.launch_error != hipSuccess) return hip.launch_error;
  ++hip.launches;
  const std::scoped_lock lock(hip.mutex);
  hip.before_last = hip.last;
  hip.last = {.function = function,
              .grid = {grid_x, grid_y, grid_z},
              .block = {block_x, block_y, block_z},
              .stream = stream,
              .current_device = current,
              .arguments = {},
              .combine = {},
              .argument_bytes = *static_cast<std::size_t*>(extra[3])};
  std::memcpy(&hip.last.arguments, extra[1], std::min(hip.last.argument_bytes, sizeof hip.last.arguments));
  std::memcpy(&hip.last.combine, extra[1], std::min(hip.last.argument_bytes, sizeof hip.last.combine));
  return hipSuccess;
}
hipError_t empty_launch(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        hipStream_t, void**, void**) {
  return hipSuccess;
}

}  // namespace

FakeHip& fake_hip() {
  if (hip_state == nullptr) reset_fake_hip();
  return *hip_state;
}

void reset_fake_hip() {
  delete hip_state;
  hip_state = new FakeHip;
  current = 0;
}

void set_current_device(int device) { current = device; }
int current_device() { return current; }

runtime::HipFunctions fake_hip_functions() {
  runtime::HipFunctions hip;
  hip.hipGetDeviceCount = get_device_count;
  hip.hipGetDevice = get_device;
  hip.hipSetDevice = set_device;
  hip.hipGetDevicePropertiesR0600 = get_properties;
  hip.hipDeviceGetAttribute = get_attribute;
  hip.hipGetErrorName = error_name;
  hip.hipGetErrorString = error_string;
  hip.hipGetLastError = last_error;
  hip.hipMalloc = allocate;
  hip.hipFree = release;
  hip.hipMemcpy = copy;
  hip.hipMemsetAsync = [](void*, int, std::size_t, hipStream_t) { return hipSuccess; };
  hip.hipDeviceSynchronize = synchronize;
  hip.hipStreamSynchronize = [](hipStream_t) { return synchronize(); };
  hip.hipStreamIsCapturing = is_capturing;
  hip.hipThreadExchangeStreamCaptureMode = exchange_capture_mode;
  hip.hipModuleLoadData = module_load;
  hip.hipModuleUnload = module_unload;
  hip.hipModuleGetFunction = get_function;
  hip.hipModuleLaunchKernel = launch;
  return hip;
}

runtime::HipFunctions empty_hip_functions() {
  runtime::HipFunctions hip = fake_hip_functions();
  hip.hipModuleLaunchKernel = empty_launch;
  return hip;
}

runtime::HipDevice fake_device(const char* architecture) {
  return {.hip = fake_hip_functions(), .ordinal = 1, .architecture = architecture, .name = "Fake GPU"};
}

}  // namespace wavejit::tests
