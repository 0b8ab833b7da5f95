// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device::launch: checks the request and lays out the kernarg segment with its hidden arguments.
#include "simgpu/machine/launch/launch.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <utility>

#include "boards/board.h"
#include "simgpu/machine/device/state.h"
#include "simgpu/machine/run/run.h"
#include "simgpu/process/ledger.h"
#include "simgpu/process/process.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::simgpu {
namespace {

class Words {
 public:
  explicit Words(std::vector<std::uint64_t>& storage) : storage_(storage) {}
  void write(std::uint32_t offset, std::uint32_t size, std::uint64_t value) {
    if (std::uint64_t{offset} + size > storage_.size() * 8) return;
    std::memcpy(reinterpret_cast<std::byte*>(storage_.data()) + offset, &value, std::min<std::size_t>(size, 8));
  }

 private:
  std::vector<std::uint64_t>& storage_;
};

// Values of hidden arguments (LLVM's AMDGPU usage document, "Code Object V5 Metadata"). Those not listed are zero:
// printf and hostcall buffers, heap, default queue.
std::uint64_t hidden_value(std::string_view kind, const LaunchRequest& request, const Launch& launch) {
  const auto dimension = static_cast<std::size_t>(kind.empty() ? 0 : std::clamp(kind.back() - 'x', 0, 2));
  if (kind.starts_with("hidden_block_count_")) return request.workgroups[dimension];
  if (kind.starts_with("hidden_group_size_")) return request.workgroup_size[dimension];
  if (kind == "hidden_dynamic_lds_size") return request.dynamic_lds_bytes;
  if (kind == "hidden_private_base") return private_aperture >> 32;
  if (kind == "hidden_shared_base") return shared_aperture >> 32;
  if (kind == "hidden_queue_ptr") return launch.own_memory[2].base;
  if (kind == "hidden_multigrid_sync_arg") return launch.cooperative ? launch.own_memory[3].base : 0;
  if (kind == "hidden_grid_dims") return 3;  // AMD's HIP 7.2 says so of every launch, and in its packet
  return 0;
}

void fill_own_memory(Launch& launch, const LaunchRequest& request) {
  const KernelInfo& info = *launch.kernel;
  // Compilers load four dwords where they want three. The segment is allocated in units of 16 bytes at least (LLVM's
  // AMDGPU usage document, "Kernel Dispatch": its alignment), so that what follows the last argument up to there can be
  // read, and means nothing.
  const std::uint64_t kernarg_bytes = (std::uint64_t{info.kernarg_bytes} + 15) / 16 * 16;
  constexpr std::uint64_t nothing = 0xa5a5a5a5a5a5a5a5;
  launch.kernarg.assign((kernarg_bytes / 8) + 1, nothing);
  std::memset(launch.kernarg.data(), 0, info.kernarg_bytes);
  std::ranges::copy(request.kernarg.first(std::min<std::size_t>(request.kernarg.size(), info.kernarg_bytes)),
                    reinterpret_cast<std::byte*>(launch.kernarg.data()));
  launch.own_memory[0] = {.base = reinterpret_cast<std::uint64_t>(launch.kernarg.data()),
                          .bytes = kernarg_bytes,
                          .kind = MemoryKind::kernarg,
                          .writable = false};
  launch.own_memory[1] = {.base = reinterpret_cast<std::uint64_t>(launch.dispatch_packet.data()),
                          .bytes = sizeof(launch.dispatch_packet),
                          .kind = MemoryKind::internal,
                          .writable = false};
  launch.own_memory[2] = {.base = reinterpret_cast<std::uint64_t>(launch.queue.data()),
                          .bytes = sizeof(launch.queue),
                          .kind = MemoryKind::internal,
                          .writable = false};
  launch.grid_sync.workgroups = launch.workgroups[0] * launch.workgroups[1] * launch.workgroups[2];
  launch.own_memory[3] = {.base = reinterpret_cast<std::uint64_t>(&launch.grid_sync),
                          .bytes = sizeof(launch.grid_sync),
                          .kind = MemoryKind::internal};
  Words arguments(launch.kernarg);
  for (const KernelArgument& argument : info.arguments) {
    if (argument.hidden()) {
      arguments.write(argument.offset, argument.size, hidden_value(argument.value_kind, request, launch));
    }
  }
  // hsa_kernel_dispatch_packet_t (HSA runtime specification 1.2, section 2.9.6).
  const auto& size = request.workgroup_size;
  const std::uint64_t dimensions = hidden_value("hidden_grid_dims", request, launch);
  const std::array<std::uint32_t, 3>& grid = launch.work_items;
  constexpr std::uint64_t packet_type_dispatch = 2;
  launch.dispatch_packet = {
      packet_type_dispatch | (dimensions << 16) | (std::uint64_t{size[0]} << 32) | (std::uint64_t{size[1]} << 48),
      size[2] | (std::uint64_t{grid[0]} << 32),
      grid[1] | (std::uint64_t{grid[2]} << 32),
      launch.scratch_bytes_per_lane | (std::uint64_t{launch.lds_bytes} << 32),
      launch.descriptor_address,
      launch.own_memory[0].base,
      0,
      0};
}

Status check(const LaunchRequest& request, const boards::Board& target, const Settings& settings) {
  const auto& groups = request.workgroups;
  const auto& size = request.workgroup_size;
  if (request.kernel == nullptr) return {hip_error_invalid_value, "launch: no kernel"};
  const KernelInfo& info = request.kernel->info();
  const std::uint64_t threads = std::uint64_t{size[0]} * size[1] * size[2];
  const auto wrong = [&](int code, std::string text) {
    return Status{code, std::format("launch of {}: {}", demangled(info.name), text)};
  };
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0 || threads == 0) {
    return wrong(hip_error_invalid_configuration,
                 std::format("grid ({}, {}, {}) of blocks ({}, {}, {}) has a zero", groups[0], groups[1], groups[2],
                             size[0], size[1], size[2]));
  }
  for (unsigned i = 0; i < 3; ++i) {
    // Sizes in work-items are 32-bit in the dispatch packet.
    if (size[i] > 1024 || std::uint64_t{groups[i]} * size[i] > 0xffffffffULL) {
      return wrong(
          hip_error_invalid_configuration,
          std::format("dimension {}: {} blocks of {}; a block takes up to 1024 and the grid below 2^32 threads", i,
                      groups[i], size[i]));
    }
    if (info.required_workgroup[i] != 0 && info.required_workgroup[i] != size[i]) {
      return wrong(hip_error_invalid_configuration,
                   std::format("block size {} in dimension {}; the kernel was compiled for {}", size[i], i,
                               info.required_workgroup[i]));
    }
  }
  const std::uint64_t most = std::min<std::uint64_t>(info.max_threads_per_workgroup, target.max_threads_per_workgroup);
  if (threads > most) {
    return wrong(hip_error_invalid_configuration,
                 std::format("{} threads a block; the kernel was compiled for at most {}", threads, most));
  }
  const std::uint64_t lds = std::uint64_t{info.static_lds_bytes} + request.dynamic_lds_bytes;
  if (lds > static_cast<std::uint64_t>(target.lds_bytes_per_workgroup)) {
    return wrong(hip_error_invalid_value, std::format("{} bytes of LDS (static {}, dynamic {}); {} has {} a workgroup",
                                                      lds, info.static_lds_bytes, request.dynamic_lds_bytes, target.id,
                                                      target.lds_bytes_per_workgroup));
  }
  if (std::string why = refusal(settings, target); !why.empty()) return wrong(hip_error_invalid_value, std::move(why));
  if (request.kernarg.size() < info.explicit_kernarg_bytes) {
    return wrong(hip_error_invalid_value, std::format("{} bytes of arguments; the kernel takes {}",
                                                      request.kernarg.size(), info.explicit_kernarg_bytes));
  }
  return {};
}

}  // namespace

Status Device::launch(const LaunchRequest& request) {
  const Settings asked = Process::instance().settings();
  if (Status status = check(request, target_, asked); !status.ok()) {
    const std::string kernel = request.kernel == nullptr ? std::string() : request.kernel->info().name;
    Ledger::instance().found(kernel, "refused", status.text);
    return status;
  }
  const KernelInfo& info = request.kernel->info();
  Launch launch;
  launch.kernel = &info;
  launch.descriptor_address = request.kernel->descriptor_address();
  launch.descriptor = &request.kernel->code_->descriptor;
  launch.code = request.kernel->code_->code;
  launch.target = &target_;
  launch.device = ordinal_;
  launch.workgroups = request.workgroups;
  launch.workgroup_size = request.workgroup_size;
  for (unsigned i = 0; i < 3; ++i) launch.work_items[i] = request.workgroups[i] * request.workgroup_size[i];
  launch.lds_bytes = info.static_lds_bytes + request.dynamic_lds_bytes;
  launch.cooperative = request.cooperative;
  launch.scratch_bytes_per_lane = scratch_bytes(info.private_bytes, info.uses_dynamic_stack);
  apply_settings(launch, asked);
  launch.observer = request.observer;
  launch.memory = DeviceMemory::instance().view();
  fill_own_memory(launch, request);
  // Firmware that knows kernarg preloading starts such kernels behind their compatibility prologue of 256 bytes.
  const std::uint64_t entry = request.kernel->code_->entry + (launch.descriptor->preload_dwords() != 0 ? 256 : 0);
  launch.entry = launch.code->instruction_at(entry);
  if (launch.entry == nullptr) {
    return {hip_error_invalid_image,
            std::format("launch of {}: no instruction at its entry {:#x}", demangled(info.name), entry)};
  }

  return run(launch);
}

}  // namespace wavejit::simgpu
