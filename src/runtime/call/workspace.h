// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The engine's own workspaces, for calls that split keys and bring none.
//
// A workspace belongs to one stream: kernels of one stream run in order, so that the next call may write what the last
// one has read by then. A call borrows a workspace while it launches its two kernels, so that two threads which launch
// on one stream get two and no kernel comes between a pair. Once there is one that is large enough, borrowing is an
// exchange of a flag: no lock, no system call, no allocation.
//
// What a workspace outgrew may still be read by kernels on the way. It is kept until the engine goes, or until the
// device runs out of memory, when the device is waited for first. Sizes at least double, so that all of it is less than
// what is in use.
//
// A loan may have counters of arrivals, too: the same stream's, so that no launch counts where another one still does.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/call/arrival_counters.h"
#include "runtime/call/workspace_allocator.h"
#include "runtime/libraries/hip_library.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

class Workspaces {
  struct Slot;

 public:
  Workspaces(const HipDevice& device, const Hooks& hooks)
      : device_(device), allocator_(device, hooks), counters_(device) {}
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // A borrowed workspace, given back at the end of the scope: when everything that uses it is launched.
  class Loan {
   public:
    Loan() = default;
    explicit Loan(Slot* slot) : slot_(slot) {}
    Loan(Loan&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Loan& operator=(Loan&& other) noexcept {
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Loan();
    void* memory() const;
    // As many zeros as were asked for.
    void* counters() const;

   private:
    Slot* slot_ = nullptr;
  };

  // WAVEJIT_OUT_OF_MEMORY with the bytes that are needed and those that the device has. `counters`: how many arrival
  // counters (arrival_counters.h); no other call has them while kernels of the stream may count there.
  Result<Loan> borrow(hip_abi::hipStream_t stream, std::uint64_t bytes, std::uint32_t counters = 0);
  // For a call that is captured: nobody else's, from now on. Null: there are none to be had now.
  void* captured_counters(std::uint32_t count) { return counters_.captured(count); }
  // So that calls can be captured which have not been made before. Not while a stream is.
  void reserve_counters() { counters_.reserve(); }

  // Waits for the device and gives back every workspace that is not lent, and all that were outgrown. The device's
  // error, if waiting failed; then they are kept.
  hip_abi::hipError_t trim();

 private:
  struct Slot {
    Slot(hip_abi::hipStream_t of_stream, std::uint64_t of_thread) : stream(of_stream), thread(of_thread) {}
    hip_abi::hipStream_t stream;
    std::uint64_t thread;  // of the stream that each thread has for itself; else 0
    Slot* next = nullptr;
    std::atomic<bool> lent{true};
    // While it is lent, the borrower's alone.
    void* memory = nullptr;
    std::uint64_t bytes = 0;
    void* counters = nullptr;
    std::uint32_t counter_count = 0;
  };

  // Memory that is to be given back, as it was asked for.
  struct Outgrown {
    void* memory;
    std::uint64_t bytes;
    hip_abi::hipStream_t stream;
  };

  Slot* add(hip_abi::hipStream_t stream, std::uint64_t thread);
  // Allocates what the slot lacks of `bytes` and `counters`.
  Result<void> grow(Slot& slot, std::uint64_t bytes, std::uint32_t counters);
  Result<void> grow_memory(Slot& slot, std::uint64_t bytes);
  // The slot is the caller's.
  void outgrow(Slot& slot);
  // Waiting and giving back, which may be the caller's function, happen without the lock.
  hip_abi::hipError_t free_outgrown();

  const HipDevice& device_;
  WorkspaceAllocator allocator_;
  ArrivalCounters counters_;
  std::atomic<Slot*> first_{nullptr};
  std::mutex mutex_;  // of what follows, and of growing the list
  std::vector<Outgrown> outgrown_;
};

}  // namespace wavejit::runtime
