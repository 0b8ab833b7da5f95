// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device::dispatch: checks a dispatch packet as the hardware's packet processor does, and runs its grid.
#include "simgpu/machine/device/dispatch.h"

#include <algorithm>
#include <bit>
#include <format>
#include <utility>

#include "boards/board.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/device/state.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/run/run.h"
#include "simgpu/process/ledger.h"
#include "simgpu/process/process.h"
#include "simgpu/process/symbol_names.h"
#include "timing/timing.h"

namespace wavejit::simgpu {
namespace {

constexpr unsigned most_dimensions = 3;

DispatchResult refused(const DispatchRequest& request, QueueError error, const std::string& text) {
  const std::string& kernel = request.kernel->info.name;
  DispatchResult result{
      .error = error, .status = {hip_error_launch_failure, std::format("dispatch of {}: {}", demangled(kernel), text)}};
  Ledger::instance().found(kernel, "refused", result.status.text);
  return result;
}

DispatchResult check_packet(const DispatchRequest& request, const boards::Board& target) {
  const DispatchPacket& packet = request.packet;
  const unsigned dimensions = packet.setup & 3;
  if (dimensions == 0) return refused(request, QueueError::dimensions, "the packet has 0 dimensions; it takes 1 to 3");
  std::uint64_t threads = 1;
  for (unsigned i = 0; i < most_dimensions; ++i) {
    if (packet.grid[i] == 0 || packet.workgroup_size[i] == 0) {
      return refused(request, QueueError::dimensions,
                     std::format("dimension {}: {} work-items in workgroups of {}; neither may be 0", i, packet.grid[i],
                                 packet.workgroup_size[i]));
    }
    threads *= packet.workgroup_size[i];
  }
  if (std::cmp_greater(threads, target.max_threads_per_workgroup)) {
    return refused(request, QueueError::workgroup_size,
                   std::format("{} work-items a workgroup; {} has up to {}", threads, target.id,
                               target.max_threads_per_workgroup));
  }
  if (std::cmp_greater(packet.group_bytes, target.lds_bytes_per_workgroup)) {
    return refused(request, QueueError::group_memory,
                   std::format("{} bytes of LDS; {} has {} a workgroup", packet.group_bytes, target.id,
                               target.lds_bytes_per_workgroup));
  }
  if (packet.kernarg == 0 && request.kernel->info.kernarg_bytes != 0) {
    return refused(request, QueueError::memory_violation,
                   std::format("the packet has no kernarg segment; the kernel takes {} bytes",
                               request.kernel->info.kernarg_bytes));
  }
  return {};
}

// Compilers load four dwords where they want three; the segment is allocated in units of 16 bytes at least (LLVM's
// AMDGPU usage document, "Kernel Dispatch"). Without a size (old headers do not tell) it is all of the allocation.
Allocation kernarg_segment(std::uint64_t base, std::uint64_t bytes, const Allocation* holder) {
  Allocation segment{.base = base, .bytes = bytes, .kind = MemoryKind::kernarg, .writable = false};
  if (holder == nullptr) return segment;
  const std::uint64_t in_units = (bytes + 15) / 16 * 16;
  if (bytes == 0) segment.bytes = holder->end() - base;
  if (bytes != 0 && (holder->holds(base, in_units) || holder->lets_read(base, in_units))) segment.bytes = in_units;
  return segment;
}

// ROCr's own kernels are one code for all of gfx9: of a flat load they await vmcnt alone, which LLVM's counters allow
// where the address is no LDS, and they leave out the wait states that gfx940 added. Neither is the program's.
Settings settings_for(const ResidentKernel& kernel) {
  Settings settings = Process::instance().settings();
  if (kernel.is_of_runtime) {
    settings.checks = 0;
    settings.arrival = Arrival::early;
    settings.workgroup_first = settings.workgroup_count = 0;
    settings.workgroup_step = 1;
    settings.sampled_only = false;
    // A stream that waits for a value waits for as long as it takes.
    settings.instruction_limit = ~std::uint64_t{0} >> 1;
  }
  return settings;
}

// Kernels written by hand may leave out what orders a wave's reads of LDS and its next load into the same bytes,
// because on hardware the read is long over when the load arrives. If nobody asks for an order, such kernels run in
// that order, and the launch reports when its result depended on it.
void take_clocks_order(Launch& launch) {
  const Config& config = Process::instance().config();
  const bool is_open = config.order_is_open && launch.settings.schedule == Schedule::in_order &&
                       launch.settings.arrival == Arrival::early && launch.settings.checks == 0;
  if (!is_open || !launch.entry->function->fills_lds || timing::find_timing(*launch.target) == nullptr) return;
  launch.settings.schedule = Schedule::timed;
  launch.settings.arrival = Arrival::timed;
  launch.watches_order = true;
}

QueueError queue_error_of(int code) {
  if (code == hip_error_illegal_address) return QueueError::memory_violation;
  if (code == hip_error_invalid_image) return QueueError::code;
  return QueueError::exception;
}

}  // namespace

DispatchResult Device::dispatch(const DispatchRequest& request) {
  const Settings asked = settings_for(*request.kernel);
  const DispatchPacket& packet = request.packet;
  if (DispatchResult wrong = check_packet(request, target_); wrong.error != QueueError::none) return wrong;
  if (std::string why = refusal(asked, target_); !why.empty()) {
    return refused(request, QueueError::exception, why);
  }

  Launch launch;
  launch.kernel = &request.kernel->info;
  launch.descriptor = &request.kernel->descriptor;
  launch.descriptor_address = packet.kernel_object;
  launch.code = request.code.get();
  launch.target = &target_;
  launch.device = ordinal_;
  launch.stops = request.stops;
  launch.cooperative = request.cooperative;
  launch.begin = request.begin;
  launch.queue_address = request.queue;
  for (unsigned i = 0; i < most_dimensions; ++i) {
    launch.workgroup_size[i] = std::min<std::uint32_t>(packet.workgroup_size[i], packet.grid[i]);
    launch.work_items[i] = packet.grid[i];
    launch.workgroups[i] = ((packet.grid[i] - 1) / packet.workgroup_size[i]) + 1;
  }
  launch.lds_bytes = packet.group_bytes;
  const bool dynamic_stack = request.kernel->descriptor.property(property_dynamic_stack);
  // The runtime has put its stack into the packet where the kernel asked for one.
  launch.scratch_bytes_per_lane = scratch_bytes(packet.private_bytes, dynamic_stack && packet.private_bytes == 0);
  apply_settings(launch, asked);
  launch.memory = DeviceMemory::instance().view();
  launch.dispatch_packet = std::bit_cast<std::array<std::uint64_t, 8>>(packet);
  const Allocation* holder = launch.memory->find(packet.kernarg);
  if (holder == nullptr) holder = launch.find_host(packet.kernarg);
  const std::uint64_t kernarg_bytes = request.kernel->info.kernarg_bytes;
  if (packet.kernarg != 0 && (holder == nullptr || !holder->holds(packet.kernarg, kernarg_bytes))) {
    return refused(request, QueueError::memory_violation,
                   std::format("its kernarg segment of {} bytes at {:#x} is not in memory that the GPU may read: {}",
                               kernarg_bytes, packet.kernarg, launch.memory->describe(packet.kernarg)));
  }
  launch.own_memory[0] = kernarg_segment(packet.kernarg, kernarg_bytes, holder);
  launch.own_memory[1] = {.base = reinterpret_cast<std::uint64_t>(launch.dispatch_packet.data()),
                          .bytes = sizeof(launch.dispatch_packet),
                          .kind = MemoryKind::internal,
                          .writable = false};
  launch.own_memory[2] = {
      .base = request.queue, .bytes = request.queue_bytes, .kind = MemoryKind::internal, .writable = false};
  if (request.queue == 0) {
    launch.own_memory[2].base = reinterpret_cast<std::uint64_t>(launch.queue.data());
    launch.own_memory[2].bytes = sizeof(launch.queue);
  }
  // Firmware that knows kernarg preloading starts such kernels behind their compatibility prologue of 256 bytes.
  const std::uint64_t entry = request.kernel->entry + (launch.descriptor->preload_dwords() != 0 ? 256 : 0);
  launch.entry = launch.code->instruction_at(entry);
  if (launch.entry == nullptr) {
    return refused(request, QueueError::code, std::format("no instruction at its entry {:#x}", entry));
  }
  if (!request.kernel->is_of_runtime) take_clocks_order(launch);
  Status status = run(launch);
  const QueueError error = status.ok() ? QueueError::none : queue_error_of(status.code);
  return {.error = error, .status = std::move(status), .time = launch.time};
}

std::expected<std::shared_ptr<ResidentCode>, Status> Device::resident_code(std::uint64_t base, std::uint64_t bytes,
                                                                           FindImage find_image) {
  if (Disassembler::for_processor(target_.id) == nullptr) {
    return std::unexpected(Status{hip_error_no_binary_for_gpu, std::format("no disassembler for {}", target_.id)});
  }
  return std::make_shared<ResidentCode>(base, bytes, target_, state_->registry, std::move(find_image));
}

}  // namespace wavejit::simgpu
