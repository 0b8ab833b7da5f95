// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counters of arrivals: what workgroups of one launch count each other with, to find out who is the last
// (templates/attention/emit/arrivals.h). They are zeros when a launch begins, and it leaves zeros: so they are cleared
// once, when their memory is made, and no call clears anything.
//
// Two launches that may run at once never share some. A stream's launches run in order and use the stream's; a graph
// may be replayed beside everything, so that each captured call has its own for as long as the engine lives. What a
// stream outgrew stays, too: sizes double, and all of it is a few kilobytes.
//
// On a stream that is being captured nothing can be cleared: that would be part of the graph. So captured calls take
// from a reserve, which is filled up at calls that are not captured, and when kernels that count are loaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/libraries/hip_library.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

// Safe from any thread.
class ArrivalCounters {
 public:
  static constexpr std::uint32_t least = 1024;  // a guess: small problems then share one size and never grow

  explicit ArrivalCounters(const HipDevice& device) : device_(device) {}
  ~ArrivalCounters();
  ArrivalCounters(const ArrivalCounters&) = delete;
  ArrivalCounters& operator=(const ArrivalCounters&) = delete;

  // `count` zeros in device memory, for work that comes behind this on the stream. They go with this object.
  Result<void*> make(std::uint32_t count, hip_abi::hipStream_t stream);
  // `count` zeros of the reserve, for a call that is being captured; null: the reserve has fewer.
  void* captured(std::uint32_t count);
  // Not while a stream is being captured. What cannot be had is not there.
  bool is_low() const { return low_.load(std::memory_order_relaxed); }
  void reserve();

 private:
  const HipDevice& device_;
  std::mutex mutex_;  // of what follows
  std::vector<void*> blocks_;
  char* free_ = nullptr;  // the reserve, in one of the blocks
  std::uint32_t left_ = 0;
  std::atomic<bool> low_{true};
};

}  // namespace wavejit::runtime
