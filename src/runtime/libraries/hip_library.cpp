// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/libraries/hip_library.h"

#include <array>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <utility>

#include "boards/known_products.h"
#include "runtime/settings/shared_object.h"
#include "system/process_forks.h"
#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipSuccess;

constexpr const char* simulated_library = "libwavejit_simgpu.so";
// The newest first. The one structure that HIP fills for us has its version in its function's name: R0600, since
// ROCm 6. Whatever has that function has that layout; HIP 5 lacks it and is refused.
constexpr std::array<const char*, 3> hip_libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};
constexpr const char* simulation_hint = "; accepted without a GPU: WAVEJIT_DEVICE=sim:<target>, for example sim:";

std::string hint() { return simulation_hint + std::string(targets::complete_targets().back().id); }

Result<HipFunctions> functions_of(void* library, const std::string& name) {
  HipFunctions hip;
  const char* missing = nullptr;
  const auto find = [&](auto& member, const char* symbol) {
    member = function_of<std::remove_reference_t<decltype(member)>>(library, symbol);
    if (member == nullptr && missing == nullptr) missing = symbol;
  };
#define WAVEJIT_HIP_FIND(name) find(hip.name, #name);
  WAVEJIT_HIP_FUNCTIONS(WAVEJIT_HIP_FIND)
#undef WAVEJIT_HIP_FIND
  if (missing != nullptr) {
    return fail(WAVEJIT_NO_DEVICE, name + " has no function " + missing + "; accepted: HIP 6 and later");
  }
  return hip;
}

Result<HipFunctions> open_hip() {
  // A framework's own copy first: two HIP runtimes in one process do not share streams.
  for (const bool resident_only : {true, false}) {
    for (const char* name : hip_libraries) {
      if (const auto library = open_by_name(name, resident_only)) return functions_of(*library, name);
    }
  }
  return fail(WAVEJIT_NO_DEVICE, "device = hip: no HIP runtime (libamdhip64.so) can be loaded" + hint());
}

std::unexpected<Failure> belongs_to_parent(const DeviceChoice& choice) {
  return fail(WAVEJIT_NO_DEVICE,
              "device = " + to_text(choice) +
                  ": this process was forked from one that uses a device; accepted: " + forks_accepted);
}

// AMD's runtime belongs to the process that asked it first, for good: how many forks had there been?
constexpr std::uint32_t nobody = ~std::uint32_t{0};
std::atomic<std::uint32_t> hip_begun_after{nobody};

Result<HipDevice> open_hip_device(const DeviceChoice& choice) {
  auto hip = open_hip();
  if (!hip) return std::unexpected(std::move(hip.error()));
  const std::uint32_t begun_after = hip_begun_after;
  if (begun_after != nobody && begun_after != system::forks_seen()) return belongs_to_parent(choice);
  int count = 0;
  const hipError_t counted = hip->hipGetDeviceCount(&count);
  if (counted != hipSuccess || count < 1) {
    return fail(WAVEJIT_NO_DEVICE,
                "device = " + to_text(choice) + ": HIP sees no GPU" +
                    (counted == hipSuccess ? std::string() : " (" + error_text(*hip, counted) + ")") + hint());
  }
  hip_begun_after = system::forks_seen();
  int ordinal = choice.ordinal.value_or(0);
  if (!choice.ordinal) {
    if (const hipError_t error = hip->hipGetDevice(&ordinal); error != hipSuccess)
      return fail(WAVEJIT_NO_DEVICE, "device = hip: " + error_text(*hip, error) + hint());
  }
  if (ordinal >= count) {
    return fail(WAVEJIT_NO_DEVICE,
                "device = " + to_text(choice) + " is not there; accepted: hip:0 to hip:" + std::to_string(count - 1));
  }
  return describe_device(*hip, ordinal);
}

Result<HipDevice> open_simulated_device(const DeviceChoice& choice) {
  const auto library = open_beside(simulated_library);
  if (!library) {
    return fail(WAVEJIT_NO_DEVICE, "device = " + to_text(choice) + ": the simulated GPU cannot be loaded (" +
                                       library.error() + "); accepted: " + simulated_library + " beside libwavejit.so");
  }
  using OpenDevices = int (*)(const char*, int, int*);
  const auto open_devices = function_of<OpenDevices>(*library, "wavejit_simgpu_open_devices");
  if (open_devices == nullptr)
    return fail(WAVEJIT_NO_DEVICE, std::string(simulated_library) + " has no wavejit_simgpu_open_devices");
  auto hip = functions_of(*library, simulated_library);
  if (!hip) return std::unexpected(std::move(hip.error()));
  std::array<int, max_simulated_devices> ordinals{};
  const int error = open_devices(choice.target.c_str(), choice.count, ordinals.data());
  // Its threads, once it had work, stay behind; until then a child may have devices of its own.
  if (error == hip_abi::hipErrorNotInitialized) return belongs_to_parent(choice);
  if (error != 0) {
    return fail(WAVEJIT_NO_DEVICE, "device = " + to_text(choice) + ": " +
                                       error_text(*hip, static_cast<hipError_t>(error)) +
                                       "; accepted targets: " + boards::known_products());
  }
  return describe_device(*hip, ordinals[choice.ordinal.value_or(0)]);
}

}  // namespace

Result<HipDevice> open_device(const DeviceChoice& choice) {
  system::watch_for_forks();
  return choice.simulated ? open_simulated_device(choice) : open_hip_device(choice);
}

Result<HipDevice> describe_device(const HipFunctions& hip, int ordinal) {
  hip_abi::hipDeviceProp_tR0600 properties{};
  if (const hipError_t error = hip.hipGetDevicePropertiesR0600(&properties, ordinal); error != hipSuccess)
    return fail(WAVEJIT_NO_DEVICE, "device " + std::to_string(ordinal) + ": " + error_text(hip, error));
  // Came with ROCm 6.1. A refusal must not be what the host's next look at HIP's errors finds.
  int xcds = 0;
  if (hip.hipDeviceGetAttribute(&xcds, hip_abi::hipDeviceAttributeNumberOfXccs, ordinal) != hipSuccess) {
    xcds = 0;
    (void)hip.hipGetLastError();
  }
  const auto text = [](const auto& field) { return std::string(field, ::strnlen(field, sizeof field)); };
  return HipDevice{.hip = hip,
                   .ordinal = ordinal,
                   .architecture = text(properties.gcnArchName),
                   .name = text(properties.name),
                   .memory_bytes = properties.totalGlobalMem,
                   .xcds = xcds,
                   .compute_units = properties.multiProcessorCount};
}

hip_abi::hipError_t load_module(const HipDevice& device, const void* image, const std::string& kernel_name,
                                hip_abi::hipModule_t* module, hip_abi::hipFunction_t* function) {
  const CurrentDevice current(device.hip, device.ordinal);
  const RelaxedCapture relaxed(device.hip);
  hip_abi::hipError_t error = current.error();
  if (error == hip_abi::hipSuccess) error = device.hip.hipModuleLoadData(module, image);
  if (error == hip_abi::hipSuccess) {
    error = device.hip.hipModuleGetFunction(function, *module, kernel_name.c_str());
    if (error != hip_abi::hipSuccess) (void)device.hip.hipModuleUnload(*module);
  }
  if (error != hip_abi::hipSuccess) (void)device.hip.hipGetLastError();
  return error;
}

bool is_capturing(const HipDevice& device, hip_abi::hipStream_t stream) {
  if (stream == nullptr || stream == hip_abi::stream_legacy()) return false;
  // The per-thread default stream is one of the current device.
  const CurrentDevice current(device.hip, device.ordinal);
  auto status = hip_abi::hipStreamCaptureStatusNone;
  const hipError_t error = device.hip.hipStreamIsCapturing(stream, &status);
  return error == hipSuccess && status != hip_abi::hipStreamCaptureStatusNone;
}

bool is_of_earlier_work(hipError_t error) {
  switch (error) {
    case hip_abi::hipErrorIllegalAddress:
    case hip_abi::hipErrorLaunchTimeOut:
    case hip_abi::hipErrorAssert:
    case hip_abi::hipErrorLaunchFailure:
    case hip_abi::hipErrorECCNotCorrectable:
      return true;
    default:
      return false;
  }
}

std::string error_text(const HipFunctions& hip, hipError_t error) {
  const char* name = hip.hipGetErrorName(error);
  const char* text = hip.hipGetErrorString(error);
  return std::string(name != nullptr ? name : "hipError") + " (" + std::to_string(static_cast<int>(error)) +
         "): " + (text != nullptr ? text : "no text");
}

}  // namespace wavejit::runtime
