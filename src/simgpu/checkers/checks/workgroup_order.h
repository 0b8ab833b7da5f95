// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One workgroup's side of the order between workgroups (launch_order.h): what each of its waves has written back, seen
// and may read.
//
// Barriers make all of it common. A buffer_wbl2 goes the way of the accesses that the workgroup's waves issued before
// the barrier, and behind them: it need not be theirs, and they need not have waited (what LLVM makes of a barrier and
// one thread's release). What one wave has seen and invalidated for is every wave's, as they share their unit's cache.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simgpu/checkers/checks/launch_order.h"
#include "simgpu/checkers/facts/addresses.h"
#include "simgpu/checkers/facts/effects.h"

namespace wavejit::simgpu::checks {

// An access, or a write-back, that orders workgroups, from its issue to its wait.
struct OrderTicket {
  enum class Kind : std::uint8_t { none, writes_back, synchronises };
  Kind kind = Kind::none;
  bool chains = false;
  bool returns = false;
  std::vector<AccessId> covers;       // by the write-back, per wave
  std::vector<std::uint64_t> places;  // dwords
  Release release;                    // what it leaves, if it writes
  std::vector<ReleaseId> found;
  ReleaseId left = no_release;
};

class WorkgroupOrder {
 public:
  // An earlier access to the same bytes, by another workgroup.
  struct Other {
    std::uint32_t workgroup = 0;  // + 1
    unsigned wave = 0;
    AccessId id = no_access;
    bool is_plain_write = false;
  };
  enum class Missing : std::uint8_t { nothing, everything, release, acquire };
  // The workgroup's accesses so far.
  struct State {
    AccessId last;                   // issued
    AccessId oldest;                 // of the wave, not waited for; no_access when there is none
    std::span<const AccessId> safe;  // per wave: waited for, and behind a barrier
    AccessId before_barrier;         // issued before the last one
  };

  // Null: nothing is followed.
  // `stores_write_through`: what was stored and waited for is where other workgroups look, without a write-back (RDNA4,
  // whose compute units share their L2).
  void prepare(LaunchOrder* launch, std::uint64_t workgroup, unsigned waves, bool stores_write_through);
  bool follows() const { return launch_ != nullptr && launch_->follows(); }
  // A wave enters a function.
  void enter(const FunctionEffects& effects) {
    if (launch_ != nullptr && effects.orders_workgroups()) launch_->follow();
  }

  // At issue: `ticket`, to go with the instruction, or null where it orders nothing. `lanes`: null where it is no
  // access to device memory.
  template <typename StateOf>
  OrderTicket* begin(unsigned wave, const Instruction& instruction, const Effects& effects, const LaneAddresses* lanes,
                     AccessId id, StateOf&& state, OrderTicket& ticket) const {
    if (!follows()) return nullptr;
    if (effects.action == Action::write_back && instruction.sc1) {
      begin_write_back(wave, state(), ticket);
    } else if (lanes != nullptr && id != no_access && (effects.atomic || instruction.sc1)) {
      begin_access(wave, effects, instruction, *lanes, id, state(), ticket);
    } else {
      return nullptr;
    }
    return &ticket;
  }
  // When the access is made.
  template <typename Execute>
  void make(OrderTicket& ticket, Execute&& execute) const {
    const bool writes = ticket.release.workgroup != 0;
    ticket.left = launch_->exchange(ticket.places, writes ? &ticket.release : nullptr, ticket.chains, ticket.found,
                                    std::forward<Execute>(execute));
  }
  // When it was waited for.
  void complete(unsigned wave, OrderTicket& ticket);
  void invalidate(unsigned wave) { waves_[wave].acquired = waves_[wave].observed; }
  void barrier();
  // Up to which of a wave's accesses all are over for all waves since a barrier, thanks to somebody's write-back.
  AccessId over(unsigned wave) const { return waves_.front().written_back[wave]; }

  // What lies between the other one's access and one of this wave's now. Plain reads look into caches.
  Missing missing(unsigned wave, const Other& other, bool reads_plainly) const;
  bool has_seen_others(unsigned wave) const { return follows() && waves_[wave].observed != nullptr; }

 private:
  using Known = std::shared_ptr<Knowledge>;  // null: nothing
  static void begin_write_back(unsigned wave, const State& state, OrderTicket& ticket);
  void begin_access(unsigned wave, const Effects& effects, const Instruction& instruction, const LaneAddresses& lanes,
                    AccessId id, const State& state, OrderTicket& ticket) const;
  struct WaveOrder {
    std::vector<AccessId> written_back;  // per wave of the workgroup
    Known observed;                      // its atomics, waited for, have seen it
    Known acquired;                      // and the caches were emptied since
  };
  Known with(const Known& known, std::vector<ReleaseId> more) const;
  bool covers(const Known& known, const Other& other, bool& heard_of) const;

  LaunchOrder* launch_ = nullptr;
  std::uint32_t workgroup_ = 0;  // + 1
  bool stores_write_through_ = false;
  std::vector<WaveOrder> waves_;
};

}  // namespace wavejit::simgpu::checks
