// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which launches a device may still have been at when it failed. HIP tells an error of a kernel at a later call and
// does not say whose it was: what was launched since the device last came to rest without an error is all that is
// known.
#pragma once

#include <atomic>
#include <cstdint>

namespace wavejit::runtime {

// On a hot call's way: two loads, and a store at a kernel's first launch after a rest.
class LaunchTrail {
 public:
  // A mark of one kernel: when it was launched last.
  class Mark {
    friend class LaunchTrail;
    std::atomic<std::uint64_t> span_{0};
  };

  void launched(Mark& mark) const noexcept {
    const std::uint64_t now = span_.load(std::memory_order_relaxed);
    if (mark.span_.load(std::memory_order_relaxed) != now) mark.span_.store(now, std::memory_order_relaxed);
  }

  // Around a wait for the whole device. What is launched while it goes on counts as not waited for.
  std::uint64_t begin_rest() noexcept { return span_.fetch_add(1) + 1; }
  void rested(std::uint64_t begun) noexcept {
    std::uint64_t last = rested_.load();
    while (last < begun && !rested_.compare_exchange_weak(last, begun)) {
    }
  }

  bool may_run(const Mark& mark) const noexcept { return mark.span_.load() >= rested_.load(); }

 private:
  std::atomic<std::uint64_t> span_{1};
  std::atomic<std::uint64_t> rested_{1};
};

}  // namespace wavejit::runtime
