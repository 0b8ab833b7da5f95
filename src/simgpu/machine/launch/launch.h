// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One launch while it runs: what all its workgroups share, and what one workgroup owns.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "boards/board.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/launch/finding.h"
#include "simgpu/machine/launch/observer.h"
#include "simgpu/machine/loader/code.h"
#include "simgpu/machine/loader/code_object.h"
#include "simgpu/machine/matrix/summation.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/config.h"
#include "simgpu/process/simulated_time.h"
#include "simgpu/process/status.h"

namespace wavejit::simgpu {

class SharedByCheckers;  // seats.h

// Where the workgroups of a cooperative launch meet, given by the hidden argument multigrid_sync_arg (ROCm device-libs,
// ockl/src/cg.cl: struct mg_info). Each workgroup counts in the lower half of `arrived`; the last one changes the upper
// half.
struct GridSync {
  std::array<std::uint64_t, 4> of_several_grids{};  // a launch has one
  std::uint32_t arrived = 0;
  std::uint32_t unused = 0;
  std::uint32_t workgroups = 0;
  std::uint32_t unused_behind = 0;
};
static_assert(offsetof(GridSync, arrived) == 32 && offsetof(GridSync, workgroups) == 40);

struct Launch {
  const KernelInfo* kernel = nullptr;
  const KernelDescriptor* descriptor = nullptr;
  std::uint64_t descriptor_address = 0;
  Code* code = nullptr;
  const boards::Board* target = nullptr;
  std::array<std::uint32_t, 3> workgroups{};
  std::array<std::uint32_t, 3> workgroup_size{};
  std::array<std::uint32_t, 3> work_items{};  // of the grid: the last workgroups of a dimension may be smaller
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes_per_lane = 0;
  // The user asked neither for checks nor for an order: findings about the order of LDS accesses become one line, and
  // no error.
  bool watches_order = false;
  bool cooperative = false;  // workgroups wait for each other, so all of them begin before any must end
  const Instruction* entry = nullptr;
  Settings settings;
  std::optional<matrix::Summation> summation;  // nothing: sums in sequential order
  std::uint32_t transcendentals_key = 0;       // 0: nearest
  Observer* observer = nullptr;
  const std::atomic<bool>* stops = nullptr;  // set when nobody needs the launch any more

  // Memory that exists for this launch only. It is not in the table of allocations, so that launches do not wait for
  // each other at the table.
  std::vector<std::uint64_t> kernarg;  // rounded up to whole words; empty if the packet has its address
  std::array<std::uint64_t, 8> dispatch_packet{};
  std::array<std::uint64_t, 32> queue{};     // amd_queue_t: zeros, unless the launch came through a queue
  GridSync grid_sync;                        // of a cooperative launch that did not come through a queue
  std::array<Allocation, 4> own_memory{};    // kernarg, dispatch packet, queue, grid_sync
  std::shared_ptr<const MemoryView> memory;  // as of the launch's begin
  std::vector<std::shared_ptr<const MemoryView>> later_memory;  // later states of it; guarded by `mutex`
  std::atomic<const MemoryView*> latest_memory{nullptr};        // the last of them
  std::deque<Allocation> host_memory;                           // what find_host found; guarded by `mutex`
  std::shared_ptr<SharedByCheckers> shared_by_checkers;         // what checkers of workgroups share; null: nothing

  std::mutex mutex;
  static constexpr std::uint64_t no_workgroup = ~std::uint64_t{0};
  std::atomic<std::uint64_t> failed_workgroup{no_workgroup};  // the lowest; its details are guarded by `mutex`
  int failure_code = 0;
  std::string failure;
  std::string failure_json;
  std::uint64_t queue_address = 0;   // launches of a queue follow each other; 0: all without one do
  int device = 0;                    // whose compute units run it
  std::optional<LaunchBegin> begin;  // where a queue keeps simulated time
  std::optional<LaunchTime> time;    // if it ran and was timed
  std::string not_timed;             // why it was not timed, if that was asked for
  std::string doubt;                 // why its cycles may be wrong; empty: no reason is known
  std::vector<Finding> findings;     // of the checks, in the order of discovery; guarded by `mutex`
  std::uint32_t silent_checks = 0;   // checks that report nothing for this kernel

  // The allocation that holds an address; null: none.
  const Allocation* find(std::uint64_t address) const {
    for (const Allocation& own : own_memory) {
      if (address - own.base < own.bytes) return &own;
    }
    return memory->find(address);
  }
  // An allocation made since the launch began that holds all of the range: the host may hand such memory to a running
  // kernel. Valid until the launch ends; null: there is none.
  const Allocation* find_later(std::uint64_t address, std::uint64_t bytes);
  // The allocation from which an address may be read; its last page counts as a whole.
  const Allocation* find_readable(std::uint64_t address);
  // The present allocations, for reports.
  const MemoryView& memory_now();
  // The host's memory around an address that is not in the table, if GPUs reach all host memory
  // (DeviceMemory::reach_host); null otherwise. Valid until the launch ends.
  const Allocation* find_host(std::uint64_t address);
  void fail(std::uint64_t workgroup, int code, std::string text, std::string json = {});
  bool is_stopped() const { return stops != nullptr && stops->load(std::memory_order_relaxed); }
  bool failed() const { return failed_workgroup.load(std::memory_order_relaxed) != no_workgroup; }
  // Whether a workgroup must still run. One before the failed workgroup must: it may fail as well, and the lowest is
  // reported.
  bool runs(std::uint64_t workgroup) const { return workgroup <= failed_workgroup.load(std::memory_order_relaxed); }

  // Whether a finding like this one is kept: one for each pair of places, and a limited number of pairs.
  bool wants(std::uint64_t workgroup, Check check, const Instruction* place, const Instruction* source);
  void add(Finding finding);
  // The findings to report: those of the lowest workgroups, one for each pair of places. Call when all workgroups have
  // run.
  std::vector<Finding> chosen_findings();
};

struct Workgroup {
  Launch* launch = nullptr;
  std::array<std::uint32_t, 3> id{};
  std::array<std::uint32_t, 3> size{};
  std::uint64_t linear_id = 0;
  std::span<Wave* const> waves;
  // Barriers in two parts: all running waves have signalled, so that waiting waves may pass. The runner resets it.
  bool barrier_was_completed = false;
  // Lets all waiting waves pass if the barrier is complete.
  void complete_barrier();
};

// What clocks show that a wave reads now: the engine's, in cycles, and the one at 100 MHz. Where nobody keeps the
// launch's time they are the machine's own count and the host's clock.
GuestTime guest_time(const Wave& wave);

// The apertures through which flat instructions reach LDS and private memory: bits 63..32 of an address (what the
// Linux driver programs on gfx9: bases 0x1'0000'0000'0000 and 0x2'0000'0000'0000, beyond any host address).
inline constexpr std::uint64_t shared_aperture = 0x1'0000'0000'0000;
inline constexpr std::uint64_t private_aperture = 0x2'0000'0000'0000;
inline constexpr std::uint64_t aperture_bytes = 0x1'0000'0000;

}  // namespace wavejit::simgpu
