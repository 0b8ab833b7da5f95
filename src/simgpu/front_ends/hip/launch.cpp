// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches: what HIP checks before a kernel is queued, and how arguments become a kernarg buffer. The hidden arguments
// behind the explicit ones are written by the engine, which knows where the metadata puts them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <expected>
#include <format>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boards/board.h"
#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/event.h"
#include "simgpu/front_ends/hip/front.h"
#include "simgpu/front_ends/hip/modules.h"
#include "simgpu/front_ends/hip/symbols.h"
#include "simgpu/machine/run/run.h"
#include "simgpu/process/process.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

namespace {

struct LaunchShape {
  std::array<std::uint64_t, 3> threads;  // of the whole grid
  std::array<std::uint64_t, 3> block;
  std::uint64_t dynamic_lds_bytes = 0;
  bool cooperative = false;
};

struct LaunchArguments {
  void** kernel_params = nullptr;
  void** extra = nullptr;
};

struct LaunchEvents {
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
};

using Kernarg = std::vector<std::byte>;

constexpr std::uint64_t grid_limit_x = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t grid_limit_yz = 65536;

std::uint64_t product(const std::array<std::uint64_t, 3>& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

bool has_zero(const std::array<std::uint64_t, 3>& sizes) { return sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0; }

// A dispatch packet holds the grid in threads in 32 bits a dimension. Block sizes are checked one by one before their
// product is, which could wrap.
bool fits_a_packet(const LaunchShape& shape, int max_threads) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape.threads[i] > std::numeric_limits<std::uint32_t>::max()) return false;
    if (std::cmp_greater(shape.block[i], max_threads)) return false;
  }
  return std::cmp_less_equal(product(shape.block), max_threads);
}

std::string wrong_shape(const LaunchShape& shape, int max_threads) {
  return std::format(
      "a grid of ({}, {}, {}) threads in blocks of ({}, {}, {}); neither may have a zero, a block has up to {} threads "
      "and the grid less than 2^32 in each dimension",
      shape.threads[0], shape.threads[1], shape.threads[2], shape.block[0], shape.block[1], shape.block[2],
      max_threads);
}

hipError_t from_kernel_params(const KernelInfo& info, void** parameters, Kernarg& kernarg) {
  std::size_t index = 0;
  for (const KernelArgument& argument : info.arguments) {
    if (argument.hidden()) continue;
    if (parameters == nullptr || parameters[index] == nullptr) return hipErrorInvalidValue;
    if (argument.offset + argument.size > kernarg.size()) return hipErrorInvalidImage;
    std::memcpy(kernarg.data() + argument.offset, parameters[index++], argument.size);
  }
  return hipSuccess;
}

// { HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END }, in this
// order.
hipError_t from_extra(const KernelInfo& info, void** extra, Kernarg& kernarg) {
  if (extra[0] != launch_param_buffer_pointer() || extra[2] != launch_param_buffer_size() ||
      extra[4] != launch_param_end() || extra[3] == nullptr) {
    return hipErrorInvalidValue;
  }
  const auto* buffer = static_cast<const std::byte*>(extra[1]);
  const std::size_t bytes = *static_cast<const std::size_t*>(extra[3]);
  if (kernarg.empty()) return bytes == 0 ? hipSuccess : hipErrorLaunchOutOfResources;
  // HIP would leave the parameters behind a short buffer undefined; here that is an error.
  if (buffer == nullptr || bytes < info.explicit_kernarg_bytes) return hipErrorInvalidValue;
  std::memcpy(kernarg.data(), buffer, kernarg.size());
  return hipSuccess;
}

// All that HIP checks of a launch apart from its stream. What is left is the work, the arguments copied into it.
std::expected<GraphWork, hipError_t> checked(const std::shared_ptr<Function>& function, LaunchShape shape,
                                             const LaunchArguments& arguments) {
  DeviceContext& context = *function->context;
  if (arguments.kernel_params != nullptr && arguments.extra != nullptr) return std::unexpected(hipErrorInvalidValue);

  const KernelInfo& info = function->info();
  const boards::Board& target = context.device().target();
  const auto refused = [&](hipError_t error, std::string_view why) {
    return std::unexpected(refuse(error, std::format("launch of {}: {}", demangled(info.name), why)));
  };
  if (const std::string why = refusal(Process::instance().settings(), target); !why.empty()) {
    return refused(hipErrorInvalidValue, why);
  }
  if (has_zero(shape.threads) || has_zero(shape.block) || !fits_a_packet(shape, target.max_threads_per_workgroup)) {
    return refused(hipErrorInvalidConfiguration, wrong_shape(shape, target.max_threads_per_workgroup));
  }
  const auto lds_limit = static_cast<std::uint64_t>(target.lds_bytes_per_workgroup);
  if (info.static_lds_bytes + shape.dynamic_lds_bytes > lds_limit) {
    return refused(
        shape.dynamic_lds_bytes > lds_limit ? hipErrorInvalidValue : hipErrorLaunchOutOfResources,
        std::format("{} bytes of LDS, {} of them the kernel's own and {} the launch's; a workgroup on {} has {}",
                    info.static_lds_bytes + shape.dynamic_lds_bytes, info.static_lds_bytes, shape.dynamic_lds_bytes,
                    target.id, lds_limit));
  }
  if (product(shape.block) > info.max_threads_per_workgroup) {
    return refused(hipErrorLaunchFailure, std::format("{} threads a block; the kernel was compiled for at most {}",
                                                      product(shape.block), info.max_threads_per_workgroup));
  }
  // A workgroup whose waves find no room together would never start.
  const auto waves = (product(shape.block) + target.wave_size - 1) / target.wave_size;
  const auto waves_of_simd = (waves + target.simds_per_compute_unit - 1) / target.simds_per_compute_unit;
  const std::uint64_t registers =
      (std::max(info.vgprs, 1U) + target.vgpr_granule - 1) / target.vgpr_granule * target.vgpr_granule;
  if (std::cmp_greater(waves_of_simd * registers, target.vgprs_per_simd_lane)) {
    return refused(hipErrorLaunchOutOfResources,
                   std::format("{} waves of {} vector registers on a SIMD; {} has {} for all of them", waves_of_simd,
                               registers, target.id, target.vgprs_per_simd_lane));
  }

  LaunchRequest request{.kernel = function->kernel,
                        .dynamic_lds_bytes = static_cast<std::uint32_t>(shape.dynamic_lds_bytes),
                        .kernarg = {},
                        .cooperative = shape.cooperative};
  for (std::size_t i = 0; i < 3; ++i) {
    shape.block[i] = std::min(shape.block[i], shape.threads[i]);
    // Kernels compiled for HIP state that all workgroups have the same size; the engine runs no others.
    if (shape.threads[i] % shape.block[i] != 0) {
      return refused(hipErrorInvalidValue, std::format("{} threads in dimension {} are no multiple of the block's {}",
                                                       shape.threads[i], i, shape.block[i]));
    }
    request.workgroups[i] = static_cast<std::uint32_t>(shape.threads[i] / shape.block[i]);
    request.workgroup_size[i] = static_cast<std::uint32_t>(shape.block[i]);
  }

  Kernarg kernarg(info.explicit_kernarg_bytes);
  const hipError_t error = arguments.extra != nullptr ? from_extra(info, arguments.extra, kernarg)
                                                      : from_kernel_params(info, arguments.kernel_params, kernarg);
  if (error != hipSuccess) {
    return refused(error, std::format("its arguments are missing, of another size, or handed over in no form that HIP "
                                      "knows; the kernel takes {} bytes of them",
                                      info.explicit_kernarg_bytes));
  }
  return [&context, request, function, kernarg = std::move(kernarg)] {
    LaunchRequest launched = request;
    launched.kernarg = kernarg;
    const Status status = context.device().launch(launched);
    if (status.ok()) return;
    std::string lines = std::format("wavejit simulated GPU: {}\n", status.text);
    for (const std::string& line : status.others) lines += std::format("wavejit simulated GPU: {}\n", line);
    std::fputs(lines.c_str(), stderr);
    context.fail(to_hip(status.code));
  };
}

hipError_t launch(const std::shared_ptr<Function>& function, const LaunchShape& shape, hipStream_t stream_handle,
                  const LaunchArguments& arguments, const LaunchEvents& events = {}) {
  const auto stream = find_stream(stream_handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  DeviceContext& context = stream->context();
  if (context.ordinal() != current_ordinal()) return hipErrorInvalidHandle;
  if (function->context != &context) return hipErrorInvalidDevice;
  if (context.error() != hipSuccess) return context.error();
  auto work = checked(function, shape, arguments);
  if (!work) return work.error();
  if (events.start != nullptr) {
    if (const hipError_t status = record_event(events.start, stream); status != hipSuccess) return status;
  }
  if (const auto captured = capture_work(stream, {hipGraphNodeTypeKernel, &context, *work})) {
    if (*captured != hipSuccess) return *captured;
  } else {
    context.submit(stream, *std::move(work));
  }
  return events.stop != nullptr ? record_event(events.stop, stream) : hipSuccess;
}

// Workgroups that wait for each other must all be resident at once.
hipError_t launch_cooperatively(const std::shared_ptr<Function>& function, LaunchShape shape, hipStream_t stream,
                                const LaunchArguments& arguments) {
  const boards::Board& target = function->context->device().target();
  if (has_zero(shape.threads) || has_zero(shape.block) || !fits_a_packet(shape, target.max_threads_per_workgroup)) {
    return refuse(hipErrorInvalidConfiguration, wrong_shape(shape, target.max_threads_per_workgroup));
  }
  const std::uint64_t asked = product(shape.threads) / product(shape.block);
  const auto of_compute_unit = workgroups_per_compute_unit(*function, static_cast<int>(product(shape.block)),
                                                           static_cast<std::size_t>(shape.dynamic_lds_bytes));
  const auto room = static_cast<std::uint64_t>(of_compute_unit) * static_cast<std::uint64_t>(target.compute_units);
  if (asked > room) {
    return refuse(hipErrorCooperativeLaunchTooLarge,
                  std::format("launch of {}: {} workgroups that wait for each other; {} compute units have room for {} "
                              "each, {} in all",
                              demangled(function->info().name), asked, target.compute_units, of_compute_unit, room));
  }
  shape.cooperative = true;
  return launch(function, shape, stream, arguments);
}

LaunchShape shape_of(const std::array<std::uint64_t, 3>& grid, const std::array<std::uint64_t, 3>& block,
                     std::uint64_t dynamic_lds_bytes) {
  return {.threads = {grid[0] * block[0], grid[1] * block[1], grid[2] * block[2]},
          .block = block,
          .dynamic_lds_bytes = dynamic_lds_bytes};
}

hipError_t launch_host_function(const void* host_function, dim3 grid, dim3 block, const LaunchArguments& arguments,
                                std::size_t dynamic_lds_bytes, hipStream_t stream, const LaunchEvents& events = {}) {
  if (host_function == nullptr) return hipErrorInvalidDeviceFunction;
  if (current_context() == nullptr) return hipErrorNoDevice;
  const auto function = find_any_function(host_function);
  if (!function) return function.error();
  return launch(*function, shape_of({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, dynamic_lds_bytes), stream,
                arguments, events);
}

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t dynamic_lds_bytes = 0;
  hipStream_t stream = nullptr;
};
thread_local std::vector<CallConfiguration> call_configurations;

}  // namespace

hipError_t hipModuleLaunchKernel(hipFunction_t handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_lds_bytes,
                                 hipStream_t stream, void** kernel_params, void** extra) {
  const DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  const LaunchShape shape = shape_of({grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds_bytes);
  // This entry answers 1 where hipLaunchKernel answers 9.
  const int max_threads = context->device().target().max_threads_per_workgroup;
  if (grid_x > grid_limit_x || grid_y > grid_limit_yz || grid_z > grid_limit_yz) {
    return finish(
        refuse(hipErrorInvalidValue, std::format("a grid of ({}, {}, {}) blocks; it takes up to {}, {} and {}", grid_x,
                                                 grid_y, grid_z, grid_limit_x, grid_limit_yz, grid_limit_yz)));
  }
  if (has_zero(shape.threads) || has_zero(shape.block) || !fits_a_packet(shape, max_threads)) {
    return finish(refuse(hipErrorInvalidValue, wrong_shape(shape, max_threads)));
  }
  const auto function = find_function(handle);
  if (function == nullptr) return finish(hipErrorInvalidHandle);
  return finish(launch(function, shape, stream, {.kernel_params = kernel_params, .extra = extra}));
}

hipError_t hipExtModuleLaunchKernel(hipFunction_t handle, std::uint32_t work_size_x, std::uint32_t work_size_y,
                                    std::uint32_t work_size_z, std::uint32_t block_x, std::uint32_t block_y,
                                    std::uint32_t block_z, std::size_t dynamic_lds_bytes, hipStream_t stream,
                                    void** kernel_params, void** extra, hipEvent_t start_event, hipEvent_t stop_event,
                                    std::uint32_t /*flags*/) {
  if (current_context() == nullptr) return finish(hipErrorNoDevice);
  const auto function = find_function(handle);
  if (function == nullptr) return finish(hipErrorInvalidHandle);
  return finish(launch(function,
                       {.threads = {work_size_x, work_size_y, work_size_z},
                        .block = {block_x, block_y, block_z},
                        .dynamic_lds_bytes = dynamic_lds_bytes},
                       stream, {.kernel_params = kernel_params, .extra = extra},
                       {.start = start_event, .stop = stop_event}));
}

hipError_t hipLaunchKernel(const void* host_function, dim3 grid, dim3 block, void** arguments,
                           std::size_t dynamic_lds_bytes, hipStream_t stream) {
  return finish(
      launch_host_function(host_function, grid, block, {.kernel_params = arguments}, dynamic_lds_bytes, stream));
}

hipError_t hipLaunchKernel_spt(const void* host_function, dim3 grid, dim3 block, void** arguments,
                               std::size_t dynamic_lds_bytes, hipStream_t stream) {
  return finish(launch_host_function(host_function, grid, block, {.kernel_params = arguments}, dynamic_lds_bytes,
                                     per_thread_default(stream)));
}

hipError_t hipExtLaunchKernel(const void* host_function, dim3 grid, dim3 block, void** arguments,
                              std::size_t dynamic_lds_bytes, hipStream_t stream, hipEvent_t start_event,
                              hipEvent_t stop_event, int /*flags*/) {
  return finish(launch_host_function(host_function, grid, block, {.kernel_params = arguments}, dynamic_lds_bytes,
                                     stream, {.start = start_event, .stop = stop_event}));
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z,
                                            unsigned dynamic_lds_bytes, hipStream_t stream, void** kernel_params) {
  if (current_context() == nullptr) return finish(hipErrorNoDevice);
  const auto function = find_function(handle);
  if (function == nullptr) return finish(hipErrorInvalidHandle);
  return finish(launch_cooperatively(function,
                                     shape_of({grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds_bytes),
                                     stream, {.kernel_params = kernel_params}));
}
hipError_t hipLaunchCooperativeKernel(const void* host_function, dim3 grid, dim3 block, void** arguments,
                                      unsigned dynamic_lds_bytes, hipStream_t stream) {
  if (host_function == nullptr) return finish(hipErrorInvalidDeviceFunction);
  if (current_context() == nullptr) return finish(hipErrorNoDevice);
  const auto function = find_any_function(host_function);
  if (!function) return finish(function.error());
  return finish(launch_cooperatively(*function,
                                     shape_of({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, dynamic_lds_bytes),
                                     stream, {.kernel_params = arguments}));
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                 std::size_t dependency_count, const hipKernelNodeParams* parameters) {
  if (parameters == nullptr || parameters->func == nullptr) return finish(hipErrorInvalidValue);
  const auto function = find_any_function(parameters->func);
  if (!function) return finish(function.error());
  const auto& [block, extra, func, grid, kernel_params, lds_bytes] = *parameters;
  auto work = checked(*function, shape_of({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, lds_bytes),
                      {.kernel_params = kernel_params, .extra = extra});
  if (!work) return finish(work.error());
  return finish(add_node(node, graph, dependencies, dependency_count,
                         {hipGraphNodeTypeKernel, (*function)->context, *std::move(work)}));
}

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, std::size_t dynamic_lds_bytes, hipStream_t stream) {
  call_configurations.push_back({grid, block, dynamic_lds_bytes, stream});
  return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, std::size_t* dynamic_lds_bytes, hipStream_t* stream) {
  if (call_configurations.empty()) return finish(hipErrorMissingConfiguration);
  const CallConfiguration top = call_configurations.back();
  call_configurations.pop_back();
  if (grid != nullptr) *grid = top.grid;
  if (block != nullptr) *block = top.block;
  if (dynamic_lds_bytes != nullptr) *dynamic_lds_bytes = top.dynamic_lds_bytes;
  if (stream != nullptr) *stream = top.stream;
  return hipSuccess;
}

// HIP's library exports this one under its C++ name as well, for programs built when the header declared it so.
// clang-format off
extern "C" __attribute__((visibility("default"), alias("hipExtModuleLaunchKernel"))) hipError_t
ext_module_launch_kernel_by_cxx_name(
    hipFunction_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::size_t, hipStream_t,
    void**, void**, hipEvent_t, hipEvent_t, std::uint32_t)
    __asm__("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
// clang-format on

}  // namespace wavejit::hip_abi
