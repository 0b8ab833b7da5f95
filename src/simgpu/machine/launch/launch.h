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
#include "simgpu/process/status.h"

namespace wavejit::simgpu {

class SharedByCheckers;  // seats.h

// What the workgroups of a cooperative launch meet at, by the hidden argument multigrid_sync_arg (ROCm device-libs,
// ockl/src/cg.cl: struct mg_info). A workgroup counts in the lower half of `arrived`; the last one moves the upper
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
  // Nobody asked for checks or an order: findings about the order of LDS accesses become one line, and no error.
  bool watches_order = false;
  bool cooperative = false;  // its workgroups wait for each other: all of them begin before any has to end
  const Instruction* entry = nullptr;
  Settings settings;
  std::optional<matrix::Summation> summation;  // nothing: sequential
  std::uint32_t transcendentals_key = 0;       // 0: nearest
  Observer* observer = nullptr;
  const std::atomic<bool>* stops = nullptr;  // nobody wants it any more

  // Memory that exists for this launch only; kept out of the table of allocations so that launches do not serialise on
  // it.
  std::vector<std::uint64_t> kernarg;  // rounded up to whole words; empty where a packet says where it lies
  std::array<std::uint64_t, 8> dispatch_packet{};
  std::array<std::uint64_t, 32> queue{};     // amd_queue_t: zeros, unless the launch came through a queue
  GridSync grid_sync;                        // of a cooperative launch that did not come through a queue
  std::array<Allocation, 4> own_memory{};    // kernarg, dispatch packet, queue, grid_sync
  std::shared_ptr<const MemoryView> memory;  // as it was when the launch began
  std::vector<std::shared_ptr<const MemoryView>> later_memory;  // as it became since; guarded by `mutex`
  std::atomic<const MemoryView*> latest_memory{nullptr};        // the last of them
  std::deque<Allocation> host_memory;                           // what find_host found; guarded by `mutex`
  std::shared_ptr<SharedByCheckers> shared_by_checkers;  // of its workgroups; null: they need nothing of each other

  std::mutex mutex;
  static constexpr std::uint64_t no_workgroup = ~std::uint64_t{0};
  std::atomic<std::uint64_t> failed_workgroup{no_workgroup};  // the lowest; what is kept of it is guarded by `mutex`
  int failure_code = 0;
  std::string failure;
  std::string failure_json;
  std::optional<LaunchTime> time;   // when it has run and was timed
  std::string not_timed;            // why it was not, where somebody asked
  std::string doubt;                // why its cycles may say nothing; empty: no reason is known
  std::vector<Finding> findings;    // of the checks, in the order of discovery; guarded by `mutex`
  std::uint32_t silent_checks = 0;  // that say nothing of this kernel

  // Where an address lies; null when nowhere.
  const Allocation* find(std::uint64_t address) const {
    for (const Allocation& own : own_memory) {
      if (address - own.base < own.bytes) return &own;
    }
    return memory->find(address);
  }
  // What was allocated since the launch began and holds all of the range: a kernel that runs is handed such memory by
  // the host. Stays for the launch; null when there is none.
  const Allocation* find_later(std::uint64_t address, std::uint64_t bytes);
  // Where a place may be read from, the rest of its page included.
  const Allocation* find_readable(std::uint64_t address);
  // What is allocated now, for reports.
  const MemoryView& memory_now();
  // The host's memory around an address that the table does not have, where GPUs reach all of it (DeviceMemory::
  // reach_host); null otherwise. Stays for the launch.
  const Allocation* find_host(std::uint64_t address);
  void fail(std::uint64_t workgroup, int code, std::string text, std::string json = {});
  bool is_stopped() const { return stops != nullptr && stops->load(std::memory_order_relaxed); }
  bool failed() const { return failed_workgroup.load(std::memory_order_relaxed) != no_workgroup; }
  // Whether a workgroup is still to run. One before the failed one is: it may fail as well, and the lowest is reported.
  bool runs(std::uint64_t workgroup) const { return workgroup <= failed_workgroup.load(std::memory_order_relaxed); }

  // Whether a finding like this one is still kept: each pair of places once, and a limited number of them.
  bool wants(std::uint64_t workgroup, Check check, const Instruction* place, const Instruction* source);
  void add(Finding finding);
  // What is reported: the findings of the lowest workgroups, each pair of places once. Call when all have run.
  std::vector<Finding> chosen_findings();
};

struct Workgroup {
  Launch* launch = nullptr;
  std::array<std::uint32_t, 3> id{};
  std::array<std::uint32_t, 3> size{};
  std::uint64_t linear_id = 0;
  std::span<Wave* const> waves;
  // Barriers in two parts: all waves that still run have signalled, and those that wait may go on. The runner takes it
  // back.
  bool barrier_was_completed = false;
  // Lets everybody pass if that is so.
  void complete_barrier();
};

// The apertures through which flat instructions reach LDS and private memory: bits 63..32 of an address (what the
// Linux driver programs on gfx9: bases 0x1'0000'0000'0000 and 0x2'0000'0000'0000, beyond any host address).
inline constexpr std::uint64_t shared_aperture = 0x1'0000'0000'0000;
inline constexpr std::uint64_t private_aperture = 0x2'0000'0000'0000;
inline constexpr std::uint64_t aperture_bytes = 0x1'0000'0000;

}  // namespace wavejit::simgpu
