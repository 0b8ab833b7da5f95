// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/doctor/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <bit>

#include "tools/simulated_gpu.h"

namespace wavejit::tools::doctor {
namespace {

// The newest first, as the runtime opens them; it has opened one.
constexpr std::array<const char*, 3> hip_libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};

// HIP's functions (hip_runtime_api.h): handles are pointers, errors are numbers.
using LoadData = int (*)(void** module, const void* image);
using Unload = int (*)(void* module);
using GetFunction = int (*)(void** function, void* module, const char* name);
using LaunchKernel = int (*)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned lds_bytes, void* stream, void** parameters,
                             void** extra);
using GetAttribute = int (*)(int* value, int attribute, int device);
using SetDevice = int (*)(int ordinal);
using ErrorName = const char* (*)(int error);
using LastError = int (*)();
using CreateEvent = int (*)(void** event);
using RecordEvent = int (*)(void* event, void* stream);
using WithEvent = int (*)(void* event);
using ElapsedTime = int (*)(float* milliseconds, void* start, void* stop);

struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned flags;
};
using GetPointerAttributes = int (*)(PointerAttributes* attributes, const void* pointer);

void* launch_word(std::uintptr_t number) { return std::bit_cast<void*>(number); }

}  // namespace

void* Gpu::symbol(const char* name) const { return ::dlsym(library_, name); }

Result<void> Gpu::hip(const char* function, int error) const {
  if (error == 0) return {};
  const auto name_of = find<ErrorName>("hipGetErrorName");
  return failed(ExitCode::device, fmt::format("{}: {}", function, name_of != nullptr ? name_of(error) : "an error"));
}

Result<Gpu> Gpu::open(const wavejit_engine_options& options) {
  const bool had_simulated = SimulatedGpu::resident().has_value();
  Gpu gpu;
  wavejit_engine* engine = nullptr;
  if (auto made = checked(wavejit_engine_create(&options, &engine)); !made) return std::unexpected(made.error());
  gpu.engine_.reset(engine);
  // A device "sim:…" never loads HIP's library. "hip" is simulated if opening this engine made the simulated GPU
  // resident.
  const std::string device = options.device != nullptr ? options.device : "";
  gpu.simulated_ = device.starts_with("sim:") || (!had_simulated && SimulatedGpu::resident().has_value());
  if (gpu.simulated_) {
    gpu.library_ = ::dlopen("libwavejit_simgpu.so", RTLD_NOW | RTLD_NOLOAD);
  } else {
    for (const char* name : hip_libraries)
      if (gpu.library_ == nullptr) gpu.library_ = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  }
  if (gpu.library_ == nullptr) return failed(ExitCode::internal, "HIP's library is not in this process");
  for (const char* needed :
       {"hipModuleLoadData", "hipModuleUnload", "hipModuleGetFunction", "hipModuleLaunchKernel",
        "hipPointerGetAttributes", "hipSetDevice", "hipDeviceGetAttribute", "hipGetLastError", "hipEventCreate",
        "hipEventRecord", "hipEventSynchronize", "hipEventElapsedTime", "hipEventDestroy"}) {
    if (gpu.symbol(needed) == nullptr)
      return failed(ExitCode::device, fmt::format("HIP's library has no function {}", needed));
  }
  // Which of HIP's devices the engine has: the one that its memory is on.
  auto memory = DeviceArray::allocate(engine, 256);
  if (!memory) return std::unexpected(memory.error());
  PointerAttributes attributes{};
  const int error = gpu.find<GetPointerAttributes>("hipPointerGetAttributes")(&attributes, memory->data());
  if (auto asked = gpu.hip("hipPointerGetAttributes", error); !asked) return std::unexpected(asked.error());
  gpu.ordinal_ = attributes.device;
  return gpu;
}

Result<void> Gpu::make_current() const { return hip("hipSetDevice", find<SetDevice>("hipSetDevice")(ordinal_)); }

bool Gpu::answers() const {
  const auto memory = DeviceArray::allocate(engine(), sizeof(std::uint32_t));
  const std::uint32_t word = 1;
  return memory && memory->copy_in(&word) && checked(wavejit_device_synchronize(engine()));
}

std::optional<int> Gpu::attribute(int number) const {
  int value = 0;
  if (find<GetAttribute>("hipDeviceGetAttribute")(&value, number, ordinal_) == 0) return value;
  static_cast<void>(find<LastError>("hipGetLastError")());
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> Gpu::run(const Probe& probe, std::span<const std::uint32_t> words) const {
  if (auto current = make_current(); !current) return std::unexpected(current.error());
  std::vector<std::uint32_t> answer(std::size_t{64} * probe.workgroups * probe.output_words, 0xdeadbeef);
  auto inputs = DeviceArray::allocate(engine(), words.size_bytes());
  if (!inputs) return std::unexpected(inputs.error());
  auto outputs = DeviceArray::allocate(engine(), answer.size() * sizeof(std::uint32_t));
  if (!outputs) return std::unexpected(outputs.error());
  if (auto copied = inputs->copy_in(words.data()); !copied) return std::unexpected(copied.error());
  if (auto copied = outputs->copy_in(answer.data()); !copied) return std::unexpected(copied.error());

  void* module = nullptr;
  if (auto loaded = hip("hipModuleLoadData", find<LoadData>("hipModuleLoadData")(&module, probe.code.data())); !loaded)
    return std::unexpected(loaded.error());
  const auto run_it = [&]() -> Result<void> {
    void* function = nullptr;
    const int found = find<GetFunction>("hipModuleGetFunction")(&function, module, "probe");
    if (auto have = hip("hipModuleGetFunction", found); !have) return have;
    std::array<void*, 2> arguments = {inputs->data(), outputs->data()};
    std::size_t bytes = sizeof arguments;
    // HIP_LAUNCH_PARAM_BUFFER_POINTER, …_BUFFER_SIZE, …_END
    std::array<void*, 5> extra = {launch_word(1), static_cast<void*>(arguments.data()), launch_word(2), &bytes,
                                  launch_word(3)};
    const int launched = find<LaunchKernel>("hipModuleLaunchKernel")(function, probe.workgroups, 1, 1, 64, 1, 1, 0,
                                                                     nullptr, nullptr, extra.data());
    if (auto ran = hip("hipModuleLaunchKernel", launched); !ran) return ran;
    if (auto waited = checked(wavejit_device_synchronize(engine())); !waited) return waited;
    return outputs->copy_out(answer.data());
  };
  const auto ran = run_it();
  static_cast<void>(find<Unload>("hipModuleUnload")(module));
  if (!ran) return std::unexpected(ran.error());
  return answer;
}

Result<Gpu::Events> Gpu::begin() const {
  if (auto current = make_current(); !current) return std::unexpected(current.error());
  Events events{};
  for (void*& event : events) {
    if (auto made = hip("hipEventCreate", find<CreateEvent>("hipEventCreate")(&event)); !made)
      return std::unexpected(made.error());
  }
  if (auto begun = hip("hipEventRecord", find<RecordEvent>("hipEventRecord")(events[0], nullptr)); !begun)
    return std::unexpected(begun.error());
  return events;
}

Result<float> Gpu::end(const Events& events) const {
  float milliseconds = 0;
  auto done = hip("hipEventRecord", find<RecordEvent>("hipEventRecord")(events[1], nullptr));
  if (done) done = hip("hipEventSynchronize", find<WithEvent>("hipEventSynchronize")(events[1]));
  if (done) {
    done = hip("hipEventElapsedTime", find<ElapsedTime>("hipEventElapsedTime")(&milliseconds, events[0], events[1]));
  }
  for (void* event : events) static_cast<void>(find<WithEvent>("hipEventDestroy")(event));
  if (!done) return std::unexpected(done.error());
  return milliseconds;
}

}  // namespace wavejit::tools::doctor
