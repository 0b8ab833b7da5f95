// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a wave has issued and not yet waited for, and when its results become visible.
//
// vmcnt and lgkmcnt count down as results arrive: vector memory in order, LDS in order, scalar loads in any order, flat
// instructions when both counters say so (LLVM's AMDGPU backend, SIInsertWaitcnts; CDNA3 ISA, chapter 4.4). After a
// wait an operation is over for certain only if it is over in every order in which results may have arrived.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/checkers/checks/lds_shadow.h"
#include "simgpu/checkers/checks/workgroup_order.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/checkers/facts/register_set.h"
#include "simgpu/machine/numerics/noise.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/config.h"

namespace wavejit::simgpu::checks {

// From the lowest to the end of the highest byte of device memory that an instruction touches; empty: none.
struct DeviceSpan {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  bool overlaps(const DeviceSpan& other) const { return first < other.end && other.first < end; }
};

class Arrivals {
 public:
  void prepare(std::uint32_t checks, Arrival arrival, std::uint64_t seed, LdsShadow& lds, WorkgroupOrder& order);

  struct Issued {
    AccessId lds_access = no_access;
    AccessId memory_access = no_access;
    std::uint64_t arrives = 0;      // when its result is there, where time is kept
    OrderTicket* ticket = nullptr;  // of an instruction that orders workgroups
    DeviceSpan device;              // what it touches, where the order of waves matters
  };

  // Reports registers that the instruction reads or overwrites before their results are certain to be there.
  void check_registers(Wave& wave, const Instruction& instruction, const Effects& effects) {
    if (awaited_.meets(effects.touched)) [[unlikely]]
      report_registers(wave, instruction, effects);
  }

  // Executes a memory instruction, now or later, and notes that it is on its way.
  void issue(Wave& wave, const Instruction& instruction, const Effects& effects, const Issued& how);
  // Another wave of the compute unit is about to touch this, whose vector memory is in order: what this wave has issued
  // and conflicts with it is made first.
  void deliver_in_front_of(Wave& wave, const DeviceSpan& touched, bool writes);
  // What is there by then becomes visible, where time is kept.
  void pass(Wave& wave, std::uint64_t time) {
    if (time >= next_arrival_) deliver_until(wave, time);
  }
  // When all is there that a wait for these counts waits for, where time is kept.
  std::uint64_t there_by(Counts counts) const;
  // s_waitcnt.
  void wait(Wave& wave, Counts counts);
  // A barrier was passed; later, another wave of the workgroup writes back what was issued before it.
  void pass_barrier();
  void deliver_from_before_barrier(Wave& wave);
  // The end of the wave: everything arrives.
  void finish(Wave& wave);
  // Nothing is late for ever: called between slices.
  void age(Wave& wave);

  // The oldest accesses to LDS, or to device memory, that are not certainly over; no_access when there are none.
  AccessId oldest_local() const;
  AccessId oldest_dma() const;
  AccessId oldest_memory() const;

 private:
  // Registers as they were at issue, for an instruction that runs later.
  struct Snapshot {
    std::uint64_t exec;
    std::uint32_t m0;
    std::uint32_t scalars[12];
    alignas(64) std::uint32_t vectors[8][lane_places];
  };
  struct Operation {
    const Instruction* instruction = nullptr;
    const Effects* effects = nullptr;
    std::uint64_t exec = 0;
    std::uint64_t issued = 0;
    std::uint64_t arrives = 0;
    AccessId lds_access = no_access;
    AccessId memory_access = no_access;
    DeviceSpan device;
    bool flat = false;
    bool vector_done = false;
    bool local_done = false;
    bool delivered = true;
    bool before_barrier = false;
    bool silenced = false;  // reported: its registers raise no further reports
    OrderTicket order;
    Snapshot snapshot;  // while it is not delivered
  };
  using Queue = std::vector<std::unique_ptr<Operation>>;  // oldest first; never more than what the counters hold

  static constexpr unsigned most_vector = 63;
  static constexpr unsigned most_local = 15;
  static constexpr unsigned most_split = 63;  // of each kind, where they are counted apart

  void report_registers(Wave& wave, const Instruction& instruction, const Effects& effects);
  // `kept`: the range is read as a destination of which the instruction keeps what it does not write.
  enum class Access : std::uint8_t { reads, keeps, writes };
  bool report_range(Wave& wave, const Instruction& instruction, const Effects& effects, const Registers& range,
                    Access access);
  static bool is_in_order(const Instruction& earlier, const Instruction& later, Access access);
  void deliver_until(Wave& wave, std::uint64_t time);
  std::unique_ptr<Operation> fresh();
  void deliver(Wave& wave, Operation& operation);
  static void keep_for_later(Wave& wave, const Instruction& instruction, Snapshot& snapshot);
  static void exchange_result(Wave& wave, const Instruction& instruction, Snapshot& snapshot);
  void deliver_older(Wave& wave, std::uint64_t issued);
  void execute(Wave& wave, Operation& operation) const;
  void deliver_all(Wave& wave, Queue& queue);
  void complete(Wave& wave, Queue& queue, std::size_t index);
  // Whether the operation may be over before or after others whatever the order of issue, though a counter counts it.
  bool is_unordered(const Operation& operation) const {
    return operation.flat || (arrival_ == Arrival::unordered && operation.effects->lds_dma);
  }
  void wait_vector(Wave& wave, Queue& queue, unsigned count);
  void land_newest(Wave& wave, const Queue& queue, unsigned count);
  void wait_local(Wave& wave, unsigned count);
  void wait_scalar(Wave& wave);
  void wait_flat(Wave& wave, Queue& queue);
  void wait_memory(Wave& wave, Queue& queue, unsigned count);
  void wait_lds(Wave& wave, unsigned count);
  void wait_split(Wave& wave, Counts counts);
  std::array<Queue*, 4> queues() { return {&vector_queue_, &store_queue_, &local_queue_, &scalar_queue_}; }
  std::array<const Queue*, 4> queues() const { return {&vector_queue_, &store_queue_, &local_queue_, &scalar_queue_}; }
  void note(const Operation& operation);
  void forget(const Operation& operation);
  void maybe_deliver(Wave& wave);
  static bool overlaps(const Operation& operation, const Registers& range);
  static std::uint64_t now(const Wave& wave) { return wave.executed - static_cast<std::uint64_t>(wave.budget); }

  std::uint32_t checks_ = 0;
  Arrival arrival_ = Arrival::early;
  Random random_{0};
  LdsShadow* lds_ = nullptr;
  WorkgroupOrder* order_ = nullptr;
  std::uint64_t next_arrival_ = ~std::uint64_t{0};  // of what is not delivered, where time is kept
  Queue vector_queue_;                              // vector memory, flat included
  Queue store_queue_;                               // its stores, where they are counted apart
  Queue local_queue_;                               // LDS
  Queue scalar_queue_;                              // scalar loads: any order
  RegisterSet awaited_;
  bool doubled_ = false;  // some register may await two results
  std::vector<std::unique_ptr<Operation>> spare_;
};

}  // namespace wavejit::simgpu::checks
